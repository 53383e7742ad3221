/** Parses ids as callers may write them into the contract's types. Accepts the same forms as HTTP. */
import {
  actionHashOf,
  keyIdOf,
  parseAddress,
  parseHash32,
  ZERO_HASH,
  type AccountId,
  type ActionHash,
  type Address,
  type ApiKey,
  type KeyId,
} from "../protocol/ids";
import { parseCid } from "../protocol/cidText";
import { MAX_U64 } from "../protocol/ids";
import { refuse } from "./errors";
import { isKeyText } from "./keyText";

const NUMERAL = /^(0|[1-9][0-9]{0,77}|0x[0-9a-fA-F]{1,64})$/;

/** A whole number up to 64 bits: a JSON number up to 2^53−1, a bigint, or a decimal or 0x-hex string. */
export function toU64(value: string | number | bigint, field: string): bigint {
  if (typeof value === "number" && !Number.isSafeInteger(value))
    refuse(`${field} must be a whole number of at most 2^53-1; give larger ones as strings.`);
  if (typeof value === "string" && !NUMERAL.test(value)) refuse(`${field} must be a decimal or 0x-hex number.`);
  const number = BigInt(value);
  return number < 0n || number > MAX_U64 ? refuse(`${field} must be 0 to 2^64-1.`) : number;
}

/** A group as the target of a call: never 0, the wildcard. */
export function toGroupId(value: string | number | bigint): bigint {
  const id = toU64(value, "group_id");
  return id === 0n ? refuse("group_id 0 is a wildcard inside scope lists, never a group.") : id;
}

export function toAddress(value: unknown, field: string): Address {
  return (
    (typeof value === "string" ? parseAddress(value) : undefined) ??
    refuse(`${field} must be an address: 0x and 40 hex digits.`)
  );
}

export function toAccountId(value: string, field: string): AccountId {
  return (parseHash32(value) as AccountId | undefined) ?? refuse(`${field} must be 0x and 64 hex digits.`);
}

/** An action named by its hash; zero means "any action", which only groups use. */
export function toActionHash(value: string, field: string): ActionHash {
  return (parseHash32(value) as ActionHash | undefined) ?? refuse(`${field} must be 0x and 64 hex digits.`);
}

/** An action named by its raw CID. */
export function actionOfCid(value: string): ActionHash {
  const cid = parseCid(value) ?? refuse("action_ipfs_cid must be a CIDv0 (Qm…), or a CIDv1 of dag-pb and sha2-256.");
  return actionHashOf(cid);
}

/** The hash a key is known by on chain. */
export const keyHashOf = (key: string): string => keyIdOf(key as ApiKey);

/** A usage key given as the key or its hash. The error never repeats the input, which may be a key. */
export function toKeyId(value: string): KeyId {
  const hash = parseHash32(value);
  if (hash !== undefined && hash !== ZERO_HASH) return hash as KeyId;
  return isKeyText(value)
    ? keyIdOf(value)
    : refuse("usage_api_key must be the key itself (44 characters of base64) or its 0x hash.");
}
