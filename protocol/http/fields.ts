/**
 * Fields of requests and answers: the accepted input and the canonical form used in the code. Two kinds of errors:
 * wrong JSON types (422, from zod's own issues or `shape: true`) and invalid values (400, with their own codes).
 * Source: docs/conformance.md §2, §4.
 */
import { z } from "zod";
import type { ErrorCode } from "../errors";
import {
  MAX_U64,
  ZERO_ADDRESS,
  parseAddress,
  parseApiKey,
  parseHash32,
  type AccountId,
  type ActionHash,
  type Address,
  type ApiKey,
} from "../ids";
import type { Cid, GroupId, KeyId, PkpId } from "../ids";
import { parseCid } from "../cid";
import { WIRE_LIMITS } from "../limits";

/** Additional data of an issue: the code of an invalid value, or that the shape itself is wrong. */
export interface IssueFacts {
  readonly code?: ErrorCode;
  readonly shape?: true;
}

type Context = z.core.ParsePayload<unknown>;

export function reject(ctx: Context, message: string, facts: IssueFacts = { code: "invalid_value" }): typeof z.NEVER {
  ctx.issues.push({ code: "custom", message, input: ctx.value, params: { ...facts } });
  return z.NEVER;
}

/** A string that `parse` converts to its canonical form or rejects. */
function parsed<T>(
  parse: (text: string) => T | undefined,
  message: string,
  meta: Record<string, unknown>,
  code: ErrorCode = "invalid_value",
) {
  return z
    .string()
    .transform((text, ctx): T => parse(text) ?? reject(ctx, message, { code }))
    .meta({ type: "string", ...meta });
}

const numeral = z.union(
  [z.string(), z.custom<number>((value) => typeof value === "number")],
  "must be a JSON number or a decimal or 0x-hex string",
);
const NOT_A_NUMERAL = "must be a decimal or 0x-hex number";
const NUMERAL = /^(0|[1-9][0-9]{0,77}|0x[0-9a-fA-F]{1,64})$/;

function bigintOf(value: string | number, max: bigint, ctx: Context): bigint {
  if (typeof value === "number") {
    if (Number.isFinite(value) && !Number.isInteger(value))
      return reject(ctx, "must be a whole number", { shape: true });
    if (!Number.isSafeInteger(value) || value < 0)
      return reject(ctx, "as a JSON number must be 0 to 2^53-1; write larger ones as a string");
  } else if (!NUMERAL.test(value)) return reject(ctx, NOT_A_NUMERAL);
  const number = BigInt(value);
  return number > max ? reject(ctx, `must be at most ${max}`) : number;
}

const NUMERAL_META = { type: ["string", "integer"], pattern: NUMERAL.source, minimum: 0 };

/**
 * A 64-bit id. `uint64` is in OpenAPI's format registry; as in protobuf's JSON mapping, answers contain it as a string.
 */
const U64_META = { ...NUMERAL_META, format: "uint64" };

/** A number of a request up to `max`, converted to a bigint. */
export function wholeNumber(max: bigint, description: string, examples: (string | number)[]) {
  return numeral.transform((value, ctx) => bigintOf(value, max, ctx)).meta({ ...NUMERAL_META, description, examples });
}

/** A number of a query or body that fits a JavaScript number. `above`: the code of one that is larger. */
export function boundedNumber(min: number, max: number, description: string, above: ErrorCode = "invalid_value") {
  return numeral
    .transform((value, ctx): number => {
      if (typeof value === "string" && !NUMERAL.test(value)) return reject(ctx, NOT_A_NUMERAL);
      const number = Number(value);
      if (Number.isFinite(number) && !Number.isInteger(number))
        return reject(ctx, "must be a whole number", { shape: true });
      if (number >= min && number <= max) return number;
      return reject(ctx, `must be ${min} to ${max}`, { code: number > max ? above : "invalid_value" });
    })
    .meta({ type: ["string", "integer"], pattern: NUMERAL.source, minimum: min, maximum: max, description });
}

/** A group as the target of a call, from 1; 0 is the wildcard, only valid in scope lists. */
export const groupId = numeral
  .transform((value, ctx): GroupId => {
    const number = bigintOf(value, MAX_U64, ctx);
    return number === 0n
      ? reject(ctx, "0 is a wildcard inside scope lists, never a group", { code: "group_zero" })
      : (number as GroupId);
  })
  .meta({
    ...U64_META,
    minimum: 1,
    description: "A group's id (u64): a JSON number up to 2^53-1, or a decimal or 0x-hex string.",
    examples: ["1"],
  });

/** A group inside a scope list; 0 means every group of the account. */
export const scopeGroupId = numeral
  .transform((value, ctx) => bigintOf(value, MAX_U64, ctx) as GroupId)
  .meta({ ...U64_META, description: "A group's id (u64); 0 means every group of the account.", examples: ["1"] });

export const address = parsed<Address>(parseAddress, "must be 0x and 40 hex digits", {
  pattern: "^0x[0-9a-fA-F]{40}$",
  description: "An EVM address, in any case.",
  examples: ["0x70997970C51812dc3A010C7d01b50e0d17dc79C8"],
});

export const accountId = parsed<AccountId>(
  (text) => parseHash32(text) as AccountId | undefined,
  "must be 0x and 64 hex digits",
  {
    pattern: "^0x[0-9a-fA-F]{64}$",
    description: "An account's id (`api_key_hash`).",
    examples: [`0x${"6f".repeat(32)}`],
  },
);

export const actionHash = parsed<ActionHash>(
  (text) => parseHash32(text) as ActionHash | undefined,
  "must be 0x and 64 hex digits",
  {
    pattern: "^0x[0-9a-fA-F]{64}$",
    description: "keccak256 of a CID's text, as list_actions shows it.",
    examples: [`0x${"a1".repeat(32)}`],
  },
);

/** A CID in any accepted form, converted to CIDv0. */
export const cid = parsed<Cid>(
  parseCid,
  "must be a CIDv0 (Qm…), or a CIDv1 of dag-pb and sha2-256",
  {
    description: "The CID of the action's code.",
    examples: ["QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX"],
    maxLength: 128,
  },
  "invalid_cid",
);

/** A reference to a PKP: its address (zero = any, owner only) or its number in the account, from 1. */
export type PkpReference = { readonly address: PkpId } | { readonly number: bigint };

export const pkpReference = numeral
  .transform((value, ctx): PkpReference => {
    // No number has 40 digits.
    if (typeof value === "string" && /^(0x)?[0-9a-fA-F]{40}$/.test(value))
      return { address: (parseAddress(`0x${value.slice(-40)}`) ?? ZERO_ADDRESS) as PkpId };
    const number = bigintOf(value, MAX_U64, ctx);
    return number === 0n ? reject(ctx, "a PKP's number starts at 1; the zero address means any PKP") : { number };
  })
  .meta({
    type: ["string", "integer"],
    pattern: "^(0x[0-9a-fA-F]{1,40}|[0-9a-fA-F]{40}|[1-9][0-9]*)$",
    minimum: 1,
    description:
      "A PKP: its wallet address (the zero address means any PKP of the account and is the owner's to use) or its " +
      "number in the account, from 1.",
    examples: ["0x70997970C51812dc3A010C7d01b50e0d17dc79C8", 1],
  });

/** A reference to a usage key: the key itself or its hash, so that a lost key can be revoked. */
export type KeyReference = { readonly key: ApiKey } | { readonly keyId: KeyId };

export const keyReference = parsed<KeyReference>(
  (text) => {
    const keyId = parseHash32(text) as KeyId | undefined;
    if (keyId !== undefined) return { keyId };
    const key = parseApiKey(text);
    return key === undefined ? undefined : { key };
  },
  "must be a usage key, or its 0x hash",
  { description: "The usage key itself, or its hash (`api_key_hash`).", examples: [`0x${"b2".repeat(32)}`] },
);

/** A text limited in UTF-8 bytes. Lone surrogates are rejected, as they have no UTF-8 form. */
function boundedText(maxBytes: number, description: string) {
  return z
    .string()
    .check((ctx) => {
      if (!ctx.value.isWellFormed()) reject(ctx, "holds half a surrogate pair, which has no UTF-8 form");
      else if (Buffer.byteLength(ctx.value, "utf8") > maxBytes)
        reject(ctx, `must be at most ${maxBytes} bytes of UTF-8`, { code: "string_too_long" });
    })
    .meta({ type: "string", maxLength: maxBytes, description });
}

/** For what is kept in columns of text, which cannot hold U+0000. */
export const withoutNul = <T extends z.ZodType<string>>(text: T) =>
  text.refine((value) => !value.includes("\0"), "must not hold U+0000");

export const nameText = boundedText(WIRE_LIMITS.nameBytes, `A name, at most ${WIRE_LIMITS.nameBytes} bytes of UTF-8.`);
export const descriptionText = boundedText(
  WIRE_LIMITS.descriptionBytes,
  `A description, at most ${WIRE_LIMITS.descriptionBytes} bytes of UTF-8.`,
);

/** A list of at most `max` items. */
export function members<T extends z.ZodType>(item: T, max: number = WIRE_LIMITS.membersPerRequest) {
  return z.array(item).max(max, `must have at most ${max} items`);
}

export const pageQuery = z.object({
  page_number: wholeNumber(MAX_U64, "Page, from 0.", ["0"])
    .default(0n)
    .meta({ ...NUMERAL_META, default: 0, description: "Page, from 0." }),
  page_size: boundedNumber(
    1,
    WIRE_LIMITS.pageSizeMax,
    `Items a page, 1 to ${WIRE_LIMITS.pageSizeMax}.`,
    "page_too_large",
  ).default(WIRE_LIMITS.pageSizeDefault),
});
export type Page = z.output<typeof pageQuery>;

/** For lists that can be searched. */
export const search = boundedText(
  WIRE_LIMITS.searchBytes,
  "Only items whose name, description or id contains this text, in any case; of the account's first " +
    `${WIRE_LIMITS.searchedRecords.toLocaleString("en-US")} records.`,
).optional();

// Fields of answers, each in one canonical form.
const out = (pattern: RegExp, description: string, example: string, format: { format?: string } = {}) =>
  z
    .string()
    .regex(pattern)
    .meta({ description, example, ...format });
export const outAddress = out(
  /^0x[0-9a-fA-F]{40}$/,
  "A checksummed address.",
  "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
);
export const outHash = out(/^0x[0-9a-f]{64}$/, "0x and 64 lower-case hex digits.", `0x${"6f".repeat(32)}`);
export const outId = out(/^(0|[1-9][0-9]{0,19})$/, "A u64 as a decimal string.", "1", { format: "uint64" });
export const outNumeral = out(/^(0|[1-9][0-9]{0,77})$/, "A number as a decimal string.", "0");
export const outCid = z
  .string()
  .meta({ description: "A CIDv0.", example: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" });
export const count = z.int().nonnegative();
export const cents = z.int().meta({ description: "US cents.", example: 1 });
/** Any JSON value. */
export const outJson = z
  .custom<z.core.util.JSONType>((value) => value !== undefined)
  .meta({ type: ["object", "array", "string", "number", "boolean", "null"], description: "Any JSON value." });
export const success = z.literal(true);

/** The minimum answer of every write. */
export const writeAnswer = z.strictObject({ success, transaction_hash: outHash });
/** Its example. */
export const written = { success: true, transaction_hash: `0x${"7a".repeat(32)}` };

/** What most routes have in common that read, and those that change an account; each states what it has otherwise. */
export const reading = { method: "GET", body: "none", request: {}, errors: [], price: "free", effect: false } as const;
export const writing = {
  ...({ method: "POST", auth: "ownerKey", body: "json", response: writeAnswer, errors: [] } as const),
  ...({ price: "managementWrite", effect: true } as const),
} as const;
