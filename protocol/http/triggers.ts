/** Triggers: actions that run by themselves, on a schedule, an event or a hook. Source: docs/triggers.md. */
import { z } from "zod";
import { MAX_U64 } from "../ids";
import { TRIGGER_LIMITS, WIRE_LIMITS } from "../limits";
import { eventSchema, hookSchema, scheduleSchema, triggerIdSchema, TRIGGER_KINDS } from "../trigger";
import { codeText } from "./actions";
import {
  boundedNumber,
  cents,
  cid,
  count,
  members,
  nameText,
  outAddress,
  outCid,
  outHash,
  outJson,
  pageQuery,
  reading,
  reject,
  scopeGroupId,
  success,
  wholeNumber,
  withoutNul,
  writing,
} from "./fields";
import { MAX_UNIX_SECONDS, paramsText } from "./runs";
import { defineRoute } from "./route";

const read = { ...reading, tag: "Triggers", auth: "keyOrWallet" } as const;
const write = { ...writing, tag: "Triggers", auth: "ownerOrWallet" } as const;

const exampleId = "3f".repeat(16);
const schedule = { cron: "0 9 * * 1-5", time_zone: "Europe/Berlin", missed: "skip" } as const;

const body = z
  .strictObject({
    name: withoutNul(nameText),
    code: withoutNul(codeText).optional(),
    action_ipfs_cid: cid.optional(),
    params: paramsText.optional(),
    schedule: scheduleSchema.optional(),
    event: eventSchema.optional(),
    hook: hookSchema.optional(),
    execute_in_groups: members(scopeGroupId, WIRE_LIMITS.scopeListItems)
      .default([0n as never])
      .meta({
        default: ["0"],
        description: "Groups where the trigger's key may run its action; [0], the default, means all.",
      }),
    expiration: wholeNumber(MAX_U64, "Unix seconds from which its key is dead; 0 = never.", ["0"]).optional(),
    balance: wholeNumber(MAX_U64, "What its key may spend over its life, in US cents; 0 = no cap.", ["0"]).optional(),
  })
  .check((ctx) => {
    const need = (names: readonly (keyof typeof ctx.value)[]): void => {
      if (names.filter((name) => ctx.value[name] !== undefined).length !== 1)
        reject(ctx, `exactly one of ${names.join(", ")} is needed`, { shape: true });
    };
    need(["code", "action_ipfs_cid"]);
    need(TRIGGER_KINDS);
  });

const time = z.string().meta({ description: "ISO 8601, in UTC.", example: "2026-11-24T08:00:00.000Z" });

const missed = z.string().optional();

const item = z.strictObject({
  id: triggerIdSchema,
  name: z.string(),
  api_key_hash: outHash.meta({
    description: "Of the trigger's usage key, which only the keyholder can derive.",
  }),
  action_ipfs_cid: outCid,
  params_sha256: z.string().meta({ description: "Of the JSON text of its params, which are stored sealed." }),
  kind: z.enum(TRIGGER_KINDS),
  schedule: z.strictObject({ cron: z.string(), time_zone: z.string(), missed: z.string() }).optional(),
  event: z
    .strictObject({
      address: z.string(),
      chain_id: count.optional(),
      topics: z.array(outJson),
      confirmations: count,
      missed,
    })
    .optional(),
  hook: z.strictObject({ verification: z.string(), respond: z.boolean(), missed, path: z.string() }).optional(),
  state: z.enum(["unattached", "active", "paused"]).meta({
    description: "`unattached`: the owner has not set its key on the chain yet.",
  }),
  reason: z.string().optional().meta({ description: "Why the service paused it." }),
  failures: count.meta({ description: `In a row; ${TRIGGER_LIMITS.failuresBeforePause} pause it.` }),
  next_due_at: time.optional(),
  last_fired_at: time.optional(),
  last_outcome: z.string().optional(),
  created_at: time,
});

const exampleItem = {
  id: exampleId,
  name: "morning report",
  api_key_hash: `0x${"b2".repeat(32)}`,
  action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX",
  params_sha256: "3c".repeat(32),
  kind: "schedule",
  schedule,
  state: "active",
  failures: 0,
  next_due_at: "2026-11-25T08:00:00.000Z",
  created_at: "2026-11-24T21:00:00.000Z",
} as const;

const ofOne = { params: z.object({ id: triggerIdSchema.meta({ description: "The trigger's id." }) }) };

const createTrigger = defineRoute({
  ...write,
  path: "/triggers",
  summary:
    "Make a trigger. Its key is derived in the keyholder from all of its definition and never returned. In API mode " +
    "it is attached at once; in ChainSecured mode the owner sends registerWalletDerivation and setUsageApiKey with " +
    "the answer's fields (one multicall).",
  auth: "keyOrWallet",
  request: { body },
  response: item.extend({
    success,
    wallet_address: outAddress,
    derivation_path: outHash,
    statement: z.string().meta({
      description: "A JWS of the keyholder's statement key: this key is the one of this definition.",
    }),
    hook_secret: z.string().optional().meta({ description: "Made where the request named none. Shown once." }),
    secret_returned_before: z.literal(true).optional(),
    transaction_hash: outHash.optional(),
  }),
  errors: [
    "invalid_cid",
    "code_too_large",
    "params_too_large",
    "string_too_long",
    "too_many_triggers",
    "unknown_group",
    "key_id_taken",
    "value_too_large",
  ],
  example: {
    body: { name: "morning report", code: "async function main() { return 1; }", schedule },
    response: {
      ...exampleItem,
      success: true,
      wallet_address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
      derivation_path: `0x02${"c4".repeat(15)}${"6f".repeat(16)}`,
      statement: "e30.e30.AA",
      transaction_hash: `0x${"7a".repeat(32)}`,
    },
  },
  bothModes: true,
  secrets: ["hook_secret"],
  secretAgain: true,
});

const listTriggers = defineRoute({
  ...read,
  path: "/triggers",
  summary: "The account's triggers, oldest first.",
  request: { query: pageQuery },
  response: z.array(item),
  example: { response: [exampleItem] },
  paged: true,
});

const getTrigger = defineRoute({
  ...read,
  path: "/triggers/:id",
  summary: "One trigger.",
  request: ofOne,
  response: item,
  errors: ["trigger_not_found"],
  example: { params: { id: exampleId }, response: exampleItem },
});

const firing = z.strictObject({
  id: z.string().meta({ description: "Also the run's `request_id`." }),
  trigger_id: triggerIdSchema,
  kind: z.enum([...TRIGGER_KINDS, "manual"]),
  cause: z
    .string()
    .meta({ description: "`due:` Unix seconds, `log:` transaction and place, `hook:` or `run:` an id." }),
  state: z.enum(["waiting", "running", "ended"]),
  due_at: time,
  started_at: time.optional(),
  ended_at: time.optional(),
  outcome: z
    .string()
    .optional()
    .meta({
      description:
        "`succeeded`, the code of the run's error or refusal, `missed`, `interrupted`, `already_ran`, `paused` or " +
        "`deleted`.",
    }),
  detail: z.string().optional(),
  duration_ms: z.number().nonnegative().optional(),
  cost_cents: cents.optional(),
  receipt: z.string().optional().meta({ description: "Of the run or its refusal; see docs/verify.md." }),
});

const exampleFiring = {
  id: "7e".repeat(16),
  trigger_id: exampleId,
  kind: "schedule",
  cause: "due:1764057600",
  state: "ended",
  due_at: "2026-11-25T08:00:00.000Z",
  started_at: "2026-11-25T08:00:00.120Z",
  ended_at: "2026-11-25T08:00:00.160Z",
  outcome: "succeeded",
  duration_ms: 12.5,
  cost_cents: 1,
} as const;

const listFirings = defineRoute({
  ...read,
  path: "/triggers/:id/firings",
  summary: "The trigger's firings, newest first, for as many days as records of runs are kept.",
  request: {
    ...ofOne,
    query: pageQuery.extend({
      until: boundedNumber(0, MAX_UNIX_SECONDS, "Unix seconds: only firings due in this second or before.").optional(),
    }),
  },
  response: z.array(firing),
  errors: ["trigger_not_found"],
  example: { params: { id: exampleId }, response: [exampleFiring] },
  paged: true,
});

const updateTrigger = defineRoute({
  ...write,
  path: "/triggers/:id/update",
  summary:
    "Rename, pause or resume a trigger. Code, params and what fires it never change: make another one. What is due " +
    "while it is paused does not fire.",
  request: {
    ...ofOne,
    body: z.strictObject({
      name: withoutNul(nameText).optional(),
      paused: z.boolean().optional().meta({ description: "true pauses, false resumes." }),
    }),
  },
  response: item,
  errors: ["trigger_not_found", "string_too_long", "chain_unavailable"],
  example: { params: { id: exampleId }, body: { paused: true }, response: { ...exampleItem, state: "paused" } },
  price: "free",
});

const deleteTrigger = defineRoute({
  ...write,
  path: "/triggers/:id/delete",
  summary:
    "Delete a trigger. In API mode its key is revoked, too; in ChainSecured mode the owner does that on the chain.",
  body: "none",
  request: ofOne,
  response: z.strictObject({ success, api_key_hash: outHash, transaction_hash: outHash.optional() }),
  errors: ["trigger_not_found"],
  example: {
    params: { id: exampleId },
    response: { success: true, api_key_hash: `0x${"b2".repeat(32)}`, transaction_hash: `0x${"7a".repeat(32)}` },
  },
  price: "writeIfFunded",
  bothModes: true,
});

const returned = {
  response: outJson.optional().meta({ description: "What the action returned." }),
  response_returned_before: z
    .literal(true)
    .optional()
    .meta({ description: "In the answer to a repeated request: responses are not stored." }),
};

const runTrigger = defineRoute({
  ...write,
  path: "/triggers/:id/run",
  summary: "Fire a trigger now, with any key of the account that may run its action, and wait for the run's end.",
  auth: "anyKey",
  body: "none",
  request: ofOne,
  response: firing.extend(returned),
  errors: ["trigger_not_found", "trigger_paused", "not_authorized"],
  example: {
    params: { id: exampleId },
    response: { ...exampleFiring, kind: "manual", cause: `run:${exampleId}`, response: 1 },
  },
  price: "run",
});

const callHook = defineRoute({
  ...write,
  path: "/hooks/:id",
  summary:
    "Fire a hook. The members of the body, a JSON object, become params of the action. Answers once the firing is " +
    "stored, or with `respond` once the run has ended.",
  auth: "none",
  body: "hook",
  request: ofOne,
  response: z.strictObject({
    success,
    firing_id: z.string(),
    repeated: z.literal(true).optional().meta({ description: "This message has been accepted before." }),
    outcome: z.string().optional(),
    ...returned,
  }),
  errors: [
    "trigger_not_found",
    "trigger_paused",
    "invalid_webhook_signature",
    "malformed_json",
    "invalid_body",
    "queue_full",
    "executor_unavailable",
  ],
  example: { params: { id: exampleId }, response: { success: true, firing_id: "7e".repeat(16) } },
  price: "free",
});

export const triggerRoutes = {
  createTrigger,
  listTriggers,
  getTrigger,
  listFirings,
  updateTrigger,
  deleteTrigger,
  runTrigger,
  callHook,
};
