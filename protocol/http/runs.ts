/** Running an action. Source: docs/conformance.md §1, §4. */
import { z } from "zod";
import { WINDOWS } from "../budgetTerms";
import { DENIALS } from "../denials";
import { RUN_ERROR_CODES } from "../errors";
import { MAX_WALL_MS, RUN_LIMITS, WIRE_LIMITS } from "../limits";
import { receiptText } from "../receipt";
import { codeText } from "./actions";
import {
  accountId,
  actionHash,
  boundedNumber,
  cents,
  cid,
  count,
  outAddress,
  outCid,
  outHash,
  outJson,
  outNumeral,
  pageQuery,
  pkpReference,
  reading,
  reject,
} from "./fields";
import { defineRoute } from "./route";

/** The year 9999, the last one that dates are written for. */
export const MAX_UNIX_SECONDS = 253_402_300_799;

/** An object passed on unchanged; `__proto__` is an ordinary member and never assigned to an object. */
export const paramsText = z
  .custom<Record<string, unknown> | null>((value) => typeof value === "object" && !Array.isArray(value), {
    message: "must be an object or null",
    params: { shape: true },
  })
  .transform((value, ctx): string => {
    const text = JSON.stringify(value ?? {});
    if (Buffer.byteLength(text, "utf8") <= RUN_LIMITS.paramsBytes) return text;
    return reject(ctx, `must be at most ${RUN_LIMITS.paramsBytes} bytes of JSON`, { code: "params_too_large" });
  })
  .meta({
    type: ["object", "null"],
    additionalProperties: true,
    description: "What `main` receives; absent or null = {}.",
  });

const body = z
  .strictObject({
    code: codeText.optional(),
    action_ipfs_cid: cid.optional(),
    ipfs_id: cid.optional(),
    js_params: paramsText.optional(),
    pkp_id: pkpReference.optional(),
    receipt: z.boolean().optional().meta({ description: "true: the receipt also in the body." }),
    timeout_ms: boundedNumber(1, MAX_WALL_MS, "Lowers the wall time of this run, in ms.").optional(),
  })
  .check((ctx) => {
    const given = [ctx.value.code, ctx.value.action_ipfs_cid, ctx.value.ipfs_id].filter((one) => one !== undefined);
    if (given.length !== 1)
      reject(ctx, "exactly one of code, action_ipfs_cid and ipfs_id is needed", {
        shape: true,
      });
  });

export const runResponse = z.strictObject({
  response: outJson.meta({
    description: "What the action returned or set; null when nothing.",
    type: ["object", "array", "string", "number", "boolean", "null"],
  }),
  signatures: z.record(z.string(), z.unknown()).optional().meta({
    description: "What `LitActions.signEcdsa` and its like signed, by `sigName`; see docs/from-lit.md.",
  }),
  logs: z.string(),
  has_error: z.boolean(),
  error: z
    .strictObject({ code: z.enum(RUN_ERROR_CODES), message: z.string(), stack: z.string().optional() })
    .optional(),
  usage: z.strictObject({ duration_ms: z.number().nonnegative(), limit_ms: z.number().positive(), cost_cents: cents }),
  receipt: receiptText.optional().meta({
    description: "With `receipt: true`: what the header `Keywright-Receipt` also carries; see docs/verify.md.",
  }),
});

/**
 * Older programs set their response as the JSON text of an object or array and expect the value. Other text is
 * unchanged.
 */
function withResponseRead(answer: unknown): unknown {
  const { response, ...rest } = answer as z.infer<typeof runResponse>;
  return {
    response: typeof response === "string" && /^\s*[[{]/.test(response) ? objectOf(response) : response,
    ...rest,
  };
}

function objectOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    // Throws for values nested too deeply to be encoded again; their text is returned.
    JSON.stringify(value);
    return value;
  } catch {
    return text;
  }
}

/**
 * Older programs name what they leave out, as null, and may send fields of their own. Of code and CID one may be empty,
 * and the CID beside code is only a hint.
 */
function withOwnFields(given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  const { code, ipfs_id: cid, ...rest } = given as Record<string, unknown>;
  const action = code ? { code } : { ipfs_id: cid || null };
  return Object.fromEntries(
    Object.entries({ ...rest, ...action }).filter(([name, value]) => Object.hasOwn(body.shape, name) && value !== null),
  );
}

const runAction = defineRoute({
  method: "POST",
  path: "/run_action",
  aliases: [{ method: "POST", path: "/lit_action", read: withOwnFields, answer: withResponseRead }],
  tag: "Actions",
  summary:
    "Run an action with the account key or a usage key. A failing action is not an HTTP error: 200 with has_error.",
  auth: "anyKey",
  body: "code",
  request: { body },
  response: runResponse,
  errors: [
    "invalid_cid",
    "code_too_large",
    "params_too_large",
    "no_execute_scope",
    "action_not_permitted",
    "pkp_not_permitted",
    "unknown_pkp_number",
    "code_not_found",
    "code_unavailable",
    "queue_full",
    "already_ran",
  ],
  example: {
    body: { code: "async function main({ name }) { return `hello ${name}`; }", js_params: { name: "world" } },
    response: {
      response: "hello world",
      logs: "",
      has_error: false,
      usage: { duration_ms: 4, limit_ms: 60_000, cost_cents: 1 },
    },
  },
  price: "run",
  effect: true,
});

const keyHash = accountId.meta({ description: "A usage key's hash, or the account's own id for runs by its owner." });

/** The outcome of a run, as recorded. */
export const RUN_OUTCOMES = ["succeeded", ...RUN_ERROR_CODES] as const;
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

const recorded = { ...reading, tag: "History", auth: "keyOrWallet", paged: true } as const;

const explainExecution = defineRoute({
  ...reading,
  path: "/explain_execution",
  tag: "Actions",
  summary:
    "Whether the contract permits a key to run an action, with a PKP if one is given, and why not: the decision of a " +
    "run at this moment. Nothing runs.",
  auth: "anyKey",
  request: {
    query: z
      .object({
        api_key_hash: keyHash,
        hashed_cid: actionHash.optional(),
        action_ipfs_cid: cid.optional(),
        pkp_id: pkpReference
          .optional()
          .meta({ description: "A PKP's address or number; left out: key and action only." }),
      })
      .check((ctx) => {
        if ((ctx.value.hashed_cid === undefined) !== (ctx.value.action_ipfs_cid === undefined)) return;
        reject(ctx, "give hashed_cid or action_ipfs_cid: one of them");
      }),
  },
  response: z.strictObject({
    allowed: z.boolean(),
    reason: z.enum(DENIALS).meta({ description: "The first rule that fails; `none` if it is allowed." }),
    detail: z.string(),
    action_by_name: z
      .boolean()
      .meta({ description: "A group that allows it lists the action itself, not any action." }),
    denied_ops: z.array(z.string()).meta({ description: "What no action may ask for with the PKP." }),
    block_number: count,
  }),
  errors: ["invalid_cid", "unknown_pkp_number", "unknown_usage_key"],
  example: {
    query: { api_key_hash: `0x${"6f".repeat(32)}`, hashed_cid: `0x${"a1".repeat(32)}` },
    response: {
      allowed: false,
      reason: "action_not_permitted",
      detail: "No group in which the key may run lists this action.",
      action_by_name: false,
      denied_ops: [],
      block_number: 12,
    },
  },
});

const listRuns = defineRoute({
  ...recorded,
  path: "/list_runs",
  summary:
    "The account's runs, newest first, for as many days as records are kept: never their " +
    "parameters, logs or responses; of a failed run its message. X-Total-Count does not consider `from` and `until`.",
  request: {
    query: pageQuery
      .extend({
        api_key_hash: keyHash.optional(),
        hashed_cid: actionHash.optional(),
        action_ipfs_cid: cid.optional(),
        outcome: z.enum(RUN_OUTCOMES).optional().meta({ description: "`succeeded`, or the code of the run's error." }),
        until: boundedNumber(
          0,
          MAX_UNIX_SECONDS,
          "Unix seconds: only runs started in this second or before.",
        ).optional(),
        from: boundedNumber(0, MAX_UNIX_SECONDS, "Unix seconds: only runs started in this second or later.").optional(),
      })
      .check((ctx) => {
        if (ctx.value.hashed_cid === undefined || ctx.value.action_ipfs_cid === undefined) return;
        reject(ctx, "give hashed_cid or action_ipfs_cid, not both");
      }),
  },
  errors: ["invalid_cid"],
  response: z.array(
    z.strictObject({
      request_id: z.string().meta({ description: "The `X-Request-Id` of the run's answer." }),
      api_key_hash: outHash,
      action_ipfs_cid: outCid,
      duration_ms: z.number().nonnegative(),
      cost_cents: cents,
      outcome: z.enum(RUN_OUTCOMES),
      pkps_used: z
        .array(outAddress)
        .meta({ description: "PKPs the run signed, encrypted or decrypted with, or whose key it read." }),
      started_at: count.meta({ description: "Unix seconds." }),
      receipt_sha256: z.string().meta({ description: "Hex of the SHA-256 of the run's receipt; empty without one." }),
      trigger_id: z.string().optional().meta({ description: "The trigger that made the run; see docs/triggers.md." }),
      error_message: z
        .string()
        .optional()
        .meta({
          description:
            "The message of a failed run, at most 500 characters and for a few days (an operator setting): for owner " +
            "credentials and the key that ran.",
        }),
    }),
  ),
  example: {
    response: [
      {
        request_id: "0b7c3f0e-6a43-4d4f-9c3a-3a2f1de5a7c1",
        api_key_hash: `0x${"6f".repeat(32)}`,
        action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX",
        duration_ms: 41.7,
        cost_cents: 1,
        outcome: "succeeded",
        pkps_used: ["0x70997970C51812dc3A010C7d01b50e0d17dc79C8"],
        started_at: 1_700_000_000,
        receipt_sha256: "3c".repeat(32),
      },
    ],
  },
});

const day = z.iso
  .date("must be a day as YYYY-MM-DD")
  .refine((text) => text >= "2000-01-01", "must be 2000-01-01 or later");

const usage = defineRoute({
  ...recorded,
  path: "/usage",
  summary: "Runs, failures, changes, prices and time by day (UTC) and key, newest day first.",
  request: {
    query: pageQuery.extend({
      from: day.optional().meta({ description: "First day, YYYY-MM-DD in UTC; left out: 29 days before `to`." }),
      to: day.optional().meta({ description: "Last day, YYYY-MM-DD in UTC; left out: today." }),
    }),
  },
  response: z.array(
    z.strictObject({
      day: z.string(),
      api_key_hash: outHash,
      runs: count,
      failed: count.meta({ description: "Of them: those whose outcome is not `succeeded`." }),
      changes: count.meta({ description: "Charged writes: by the owner under the account's id." }),
      changes_cents: cents,
      cost_cents: cents.meta({ description: "US cents that the runs cost.", example: 1 }),
      duration_ms: z.number().nonnegative(),
    }),
  ),
  example: {
    response: [
      {
        day: "2026-01-31",
        api_key_hash: `0x${"6f".repeat(32)}`,
        runs: 12,
        failed: 1,
        changes: 2,
        changes_cents: 2,
        cost_cents: 13,
        duration_ms: 530.2,
      },
    ],
  },
});

const getBudgets = defineRoute({
  ...recorded,
  path: "/budgets",
  summary:
    "The budgets that the account's actions have spent of, those asked for last first, and what is used of each in " +
    "the present hour or day of the chain's time.",
  request: {
    query: pageQuery.extend({
      page_size: boundedNumber(
        1,
        WIRE_LIMITS.budgetsPageMax,
        `Items a page, 1 to ${WIRE_LIMITS.budgetsPageMax}.`,
        "page_too_large",
      ).default(WIRE_LIMITS.pageSizeDefault),
    }),
  },
  response: z.array(
    z.strictObject({
      action_ipfs_cid: outCid,
      hashed_cid: outHash,
      name: z.string(),
      window: z.enum(WINDOWS),
      used: outNumeral.meta({
        description: "Counted on the chain: what was spent, and what keyholders have leased to spend.",
      }),
      limit: outNumeral.meta({ description: "The limit that the code stated when an amount was leased last." }),
      window_start: count.meta({ description: "Unix seconds." }),
      window_end: count.meta({ description: "Unix seconds: `used` is 0 again from here on." }),
    }),
  ),
  example: {
    response: [
      {
        action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX",
        hashed_cid: `0x${"a1".repeat(32)}`,
        name: "usdc-daily",
        window: "day",
        used: "12500000",
        limit: "100000000",
        window_start: 1_699_920_000,
        window_end: 1_700_006_400,
      },
    ],
  },
});

export const runRoutes = { runAction, explainExecution, listRuns, usage, getBudgets };
