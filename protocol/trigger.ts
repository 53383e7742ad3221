/**
 * Triggers: actions that run by themselves. What fires one, as requests, definitions and answers contain it, and the
 * causes of single firings, which the keyholder checks. Source: docs/triggers.md.
 */
import { z } from "zod";
import { TRIGGER_LIMITS } from "./limits";
import { problemOf } from "./schedule";

const hash32 = z.string().regex(/^0x[0-9a-fA-F]{64}$/, "must be 0x and 64 hex digits");
const address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, "must be 0x and 40 hex digits");
const seconds = z.int().nonnegative();

export const MISSED = ["skip", "once"] as const;
export type Missed = (typeof MISSED)[number];

/** Of logs and requests, which wait unless they are not wanted late. Absent means `once`: keys stay what they are. */
const missedOf = (what: string) =>
  z
    .enum(MISSED)
    .optional()
    .meta({
      description: `\`once\`, as if left out: ${what} fires also after a restart of the keyholder; \`skip\`: not.`,
    });

export const scheduleSchema = z
  .strictObject({
    cron: z
      .string()
      .max(TRIGGER_LIMITS.cronChars)
      .meta({
        description: "Five fields: minute, hour, day of month, month, day of week. At least a minute apart.",
        examples: ["*/5 * * * *", "0 9 * * 1-5"],
      }),
    time_zone: z.string().max(64).default("UTC").meta({ description: "An IANA time zone; UTC if left out." }),
    missed: z.enum(MISSED).default("skip").meta({
      description: "After an outage: `skip` makes no late firing, `once` makes the last missed one.",
    }),
  })
  .check((ctx) => {
    const problem = problemOf(ctx.value, Date.now());
    if (problem === undefined) return;
    ctx.issues.push({
      code: "custom",
      path: [problem.field],
      message: problem.message,
      input: ctx.value,
      params: { code: "invalid_value" },
    });
  });
export type Schedule = z.output<typeof scheduleSchema>;

const topic = z.union([hash32, z.null(), z.array(hash32).min(1).max(16)]);

export const eventSchema = z.strictObject({
  address: address.meta({ description: "The contract whose logs fire the trigger." }),
  chain_id: z.int().positive().optional().meta({
    description: "Of the contract's chain, one that the service reads; left out: the account's chain.",
  }),
  topics: z.array(topic).max(4).default([]).meta({
    description: "As in `eth_getLogs`: each a topic, a list of alternatives, or null for any.",
  }),
  confirmations: z.int().min(1).max(TRIGGER_LIMITS.confirmations).default(1).meta({
    description: "Blocks from the log's own to the newest, both counted, before it fires.",
  }),
  missed: missedOf("a log of the last 24 hours"),
});
export type EventSettings = z.output<typeof eventSchema>;

export const VERIFICATIONS = ["none", "hmac", "standard_webhooks"] as const;

export const hookSchema = z
  .strictObject({
    verification: z.enum(VERIFICATIONS).default("none").meta({
      description: "`none`: whoever knows the URL; `hmac`: HMAC-SHA256 of the body; `standard_webhooks`: as specified.",
    }),
    secret: z.string().min(16).max(256).optional().meta({
      description: "The sender's secret. Left out: one is made and returned once. Kept sealed by the keyholder.",
    }),
    respond: z.boolean().default(false).meta({
      description: "true: the hook's answer waits for the run and contains its response.",
    }),
    missed: missedOf("a request that waits"),
  })
  .check((ctx) => {
    const { verification, secret } = ctx.value;
    const refuse = (message: string): void =>
      void ctx.issues.push({
        code: "custom",
        path: ["secret"],
        message,
        input: undefined,
        params: { code: "invalid_value" },
      });
    if (verification === "none" && secret !== undefined) refuse("is for hmac and standard_webhooks only");
    if (verification === "standard_webhooks" && secret !== undefined && webhookSecretBytes(secret) === undefined)
      refuse("must be base64 of 24 to 64 bytes, after whsec_ or alone");
  });
export type HookSettings = z.output<typeof hookSchema>;

/** Base64 of 64 bytes. */
const MAX_SECRET_CHARS = 88;

/** The bytes of a Standard Webhooks secret; undefined if it is none. */
export function webhookSecretBytes(secret: string): Buffer | undefined {
  const text = secret.replace(/^whsec_/, "");
  // A schema's own checks do not keep longer texts from here, and those below take the square of the length.
  if (text.length > MAX_SECRET_CHARS) return undefined;
  const bytes = Buffer.from(text, "base64");
  const isCanonical = bytes.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "");
  return isCanonical && bytes.length >= 24 && bytes.length <= 64 ? bytes : undefined;
}

/** Exactly one of the three. */
export const settingsSchema = z.union([
  z.strictObject({ schedule: scheduleSchema }),
  z.strictObject({ event: eventSchema }),
  z.strictObject({ hook: hookSchema }),
]);
export type Settings = z.output<typeof settingsSchema>;

export const TRIGGER_KINDS = ["schedule", "event", "hook"] as const;
export type TriggerKind = (typeof TRIGGER_KINDS)[number];
export const kindOfSettings = (settings: Settings): TriggerKind =>
  "schedule" in settings ? "schedule" : "event" in settings ? "event" : "hook";

/** 128 random bits in hex; for a hook without verification, what its caller has to know. */
export const triggerIdSchema = z.string().regex(/^[0-9a-f]{32}$/, "must be 32 lower-case hex digits");

/** All that a trigger is. Its key is derived from these bytes: with anything changed it is another key. */
export const definitionSchema = z.strictObject({
  v: z.literal(1),
  id: triggerIdSchema,
  cid: z.string(),
  /** JSON text of an object. */
  params: z.string(),
  settings: settingsSchema,
});
export type Definition = z.output<typeof definitionSchema>;

/** Why a trigger fires, as the relayer says; the keyholder checks it. */
export const causeSchema = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("schedule"), dueAtSeconds: seconds }),
  z.strictObject({
    type: z.literal("event"),
    blockNumber: seconds,
    blockHash: hash32,
    transactionHash: hash32,
    /** Among the logs of the transaction that match, from 0: unlike its index in the block it survives a reorg. */
    place: seconds,
  }),
  /** What the keyholder made of an accepted request. */
  z.strictObject({ type: z.literal("hook"), accepted: z.string() }),
  z.strictObject({
    type: z.literal("manual"),
    id: triggerIdSchema,
    by: z.discriminatedUnion("type", [
      z.strictObject({ type: z.literal("key"), key: z.string() }),
      z.strictObject({ type: z.literal("identity"), token: z.string() }),
    ]),
  }),
]);
export type Cause = z.infer<typeof causeSchema>;

/**
 * Names what fires, once for each trigger: the same in the relayers' rows and in the keyholder's memory, and whichever
 * case a hash is written in.
 */
export function causeKeyOf(cause: Exclude<Cause, { type: "hook" }>): string {
  if (cause.type === "schedule") return `due:${cause.dueAtSeconds}`;
  if (cause.type === "event") return `log:${cause.transactionHash.toLowerCase()}:${cause.place}`;
  return `run:${cause.id}`;
}

/** Whether a due time may still begin at this moment, by the clock that is asked. */
export function mayBegin(
  { missed }: Pick<Schedule, "missed">,
  { dueMs, followingMs, nowMs }: { dueMs: number; followingMs: number | undefined; nowMs: number },
): boolean {
  if (nowMs < dueMs - TRIGGER_LIMITS.earlySeconds * 1_000) return false;
  const late = TRIGGER_LIMITS.lateSeconds * 1_000;
  if (nowMs <= dueMs + late) return true;
  return missed === "once" && (followingMs === undefined || nowMs <= followingMs + late);
}

/** Whether a log's topics, in lower case, fit the filter, as in `eth_getLogs`. */
export function topicFilter(wanted: EventSettings["topics"]): (topics: readonly string[]) => boolean {
  const sets = wanted.map((one) => (one === null ? one : new Set([one].flat().map((topic) => topic.toLowerCase()))));
  return (topics) =>
    sets.length <= topics.length && sets.every((set, index) => set === null || set.has(topics[index] ?? ""));
}

/** Headers of a hook's request that its verification reads; all others stay with the relayer. */
export const HOOK_HEADERS = [
  "webhook-id",
  "webhook-timestamp",
  "webhook-signature",
  "x-hub-signature-256",
  "x-signature-256",
  "x-signature",
] as const;

/** In the protected header of the keyholder's statement about a trigger's key. */
export const TRIGGER_STATEMENT_TYPE = "trigger+jws";
