/** History: contract events and the outcome of writes. Source: docs/conformance.md §6. */
import { z } from "zod";
import { boundedNumber, count, outHash, outJson, reading } from "./fields";
import { EXPORT_KINDS } from "../exports";
import { WIRE_LIMITS } from "../limits";
import { defineRoute } from "./route";

const read = { ...reading, tag: "History", auth: "keyOrWallet" } as const;

const hash = `0x${"6f".repeat(32)}`;
const transaction = `0x${"7a".repeat(32)}`;

const events = defineRoute({
  ...read,
  path: "/events",
  summary:
    "The contract's events of the credential's account, oldest first or newest first. Pass `next` as `after` to go on.",
  request: {
    query: z.object({
      after: z
        .string()
        .max(128, "must be a cursor of an earlier answer")
        .optional()
        .meta({ description: "A cursor of an earlier answer." }),
      order: z
        .enum(["oldest", "newest"], "must be oldest or newest")
        .default("oldest")
        .meta({ description: "Which events come first. With `newest`, `after` goes on to older ones." }),
      limit: boundedNumber(
        1,
        WIRE_LIMITS.eventsPageMax,
        `At most so many events, 1 to ${WIRE_LIMITS.eventsPageMax}. Fewer where they are large.`,
      ).default(100),
    }),
  },
  response: z.strictObject({
    events: z.array(
      z.strictObject({
        cursor: z.string(),
        name: z.string(),
        block_number: count,
        transaction_hash: outHash,
        log_index: count,
        args: z.record(z.string(), outJson),
        removed: z.literal(true).optional().meta({
          description: "This event was taken back, by a reorganisation of the chain or to list an earlier one first.",
        }),
      }),
    ),
    next: z.string().meta({ description: "The cursor of the next page; the given one when there is nothing new." }),
  }),
  example: {
    response: {
      events: [
        {
          cursor: "12-0",
          name: "GroupAdded",
          block_number: 12,
          transaction_hash: transaction,
          log_index: 0,
          args: { id: hash, groupId: "1", name: "treasury", description: "", actor: hash },
        },
      ],
      next: "12-0",
    },
  },
});

export const SUBMISSION_STATES = [
  "reserved",
  "signed",
  "sent",
  "mined",
  "confirmed",
  "failed",
  "expired",
  "changed",
] as const;

const outcome = {
  result: z.record(z.string(), outJson).optional(),
  error: z.looseObject({ code: z.string(), detail: z.string() }).optional(),
};

const submission = defineRoute({
  ...read,
  path: "/submissions/:id",
  summary: "What became of a write, by the `submission_id` of its 504. Never shows a secret.",
  auth: "optionalKey",
  request: {
    params: z.object({
      id: z
        .string()
        .regex(/^[0-9a-f]{32}$/, "must be 32 lower-case hex digits")
        .meta({ description: "128 random bits in hex." }),
    }),
  },
  response: z.strictObject({
    id: z.string(),
    kind: z.string(),
    state: z.enum(SUBMISSION_STATES),
    transaction_hash: outHash.optional(),
    result: outcome.result,
    error: outcome.error,
    charged: z.boolean().meta({
      description:
        "Whether the account has paid for it: the ledger has a posting whose reference is this id. False while it " +
        "has no outcome, for writes that are free or were executed without credit, and for those given back.",
    }),
    before: z
      .strictObject(outcome)
      .optional()
      .meta({ description: "With `changed`: what had been answered before a reorganisation of the chain." }),
  }),
  errors: ["submission_not_found"],
  example: {
    params: { id: "d3".repeat(16) },
    response: {
      id: "d3".repeat(16),
      kind: "add_group",
      state: "confirmed",
      transaction_hash: transaction,
      result: { group_id: "1" },
      charged: true,
    },
  },
});

const exportHistory = defineRoute({
  ...read,
  path: "/export",
  summary:
    "The account's runs, writes or postings, newest first, as JSON Lines or CSV. An answer has at most `limit` rows; " +
    "go on after its last one with that row's `cursor` until an answer has no rows. For owner credentials.",
  auth: "ownerOrWallet",
  request: {
    query: z.object({
      kind: z
        .enum(EXPORT_KINDS, `must be ${EXPORT_KINDS.join(", ")}`)
        .meta({ description: "Runs with the hashes of their receipts, writes with transactions, or the ledger." }),
      format: z.enum(["jsonl", "csv"], "must be jsonl or csv").default("jsonl"),
      cursor: z
        .string()
        .max(128, "must be the cursor of a row")
        .optional()
        .meta({ description: "The cursor of a row: only what is older follows." }),
      limit: boundedNumber(
        1,
        WIRE_LIMITS.exportRowsMax,
        `At most so many rows, 1 to ${WIRE_LIMITS.exportRowsMax}.`,
      ).default(WIRE_LIMITS.exportRowsMax),
    }),
  },
  response: z.string(),
  answers: "application/x-ndjson",
  errors: ["queue_full"],
  example: {
    query: { kind: "postings" },
    response:
      `{"cursor":"2","id":"2","kind":"write","amount_cents":-1,"reference":"${"d3".repeat(16)}","api_key_hash":null,` +
      '"created_at":"2026-11-20T12:00:00.000Z"}\n',
  },
});

export const historyRoutes = { events, submission, exportHistory };
