/**
 * Branded types of identifiers: a key hash is not just any string. Each has one parser for the accepted input and one
 * canonical text form.
 * Source: docs/conformance.md §2.
 */
import { getAddress, keccak256, solidityPacked, SigningKey, computeAddress, toUtf8Bytes } from "ethers";

declare const brand: unique symbol;
type Branded<T, Name extends string> = T & { readonly [brand]: { readonly [N in Name]: true } };

/** 0x and 64 lower-case hex digits. */
export type Hash32 = Branded<string, "Hash32">;
/** The account's id on chain (`apiKeyHash`); it never changes. */
export type AccountId = Branded<Hash32, "AccountId">;
/** The hash under which the contract knows a key (account key or usage key). */
export type KeyId = Branded<Hash32, "KeyId">;
/** keccak256 of the UTF-8 bytes of a CID's text; zero means "any action". */
export type ActionHash = Branded<Hash32, "ActionHash">;
/** kind byte ‖ 15 random bytes ‖ low 16 bytes of the account id. */
export type DerivationPath = Branded<Hash32, "DerivationPath">;
/** A checksummed EVM address. */
export type Address = Branded<string, "Address">;
/** A PKP's wallet address; zero means "any PKP". */
export type PkpId = Branded<Address, "PkpId">;
/** Counted per account from 1; 0 is the wildcard in scope lists and never a target. */
export type GroupId = Branded<bigint, "GroupId">;
/** A CIDv0 (Qm…, 46 characters). */
export type Cid = Branded<string, "Cid">;
/** A key secret in its canonical text form: 44 characters of standard base64. Never logged. */
export type ApiKey = Branded<string, "ApiKey">;

export const ZERO_HASH = `0x${"0".repeat(64)}` as Hash32;
export const ZERO_ADDRESS = `0x${"0".repeat(40)}` as Address;
export const MAX_U64 = 2n ** 64n - 1n;

const HASH32 = /^0x[0-9a-fA-F]{64}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const CANONICAL_KEY = /^[A-Za-z0-9+/]{43}=$/;

/** Lower case of 0x and 64 hex digits; undefined for anything else. */
export function parseHash32(text: string): Hash32 | undefined {
  return HASH32.test(text) ? (text.toLowerCase() as Hash32) : undefined;
}

/** The checksummed form of 0x and 40 hex digits in any case, as clients differ; undefined for anything else. */
export function parseAddress(text: string): Address | undefined {
  return ADDRESS.test(text) ? (getAddress(text.toLowerCase()) as Address) : undefined;
}

/** A uint256 as 32-byte hex, the form used in requests and answers. */
export function hash32FromUint(value: bigint): Hash32 {
  return `0x${value.toString(16).padStart(64, "0")}` as Hash32;
}

/**
 * The key if the text is valid: 32 bytes in canonical standard base64 that are a valid secp256k1 secret. Checked before
 * any hashing.
 */
export function parseApiKey(text: string): ApiKey | undefined {
  if (!CANONICAL_KEY.test(text)) return undefined;
  const secret = Buffer.from(text, "base64");
  if (secret.length !== 32 || secret.toString("base64") !== text) return undefined;
  return isSecp256k1Secret(secret) ? (text as ApiKey) : undefined;
}

const SECP256K1_ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

function isSecp256k1Secret(secret: Uint8Array): boolean {
  const value = BigInt(`0x${Buffer.from(secret).toString("hex")}`);
  return value > 0n && value < SECP256K1_ORDER;
}

/** The key's id on chain: keccak256 of the UTF-8 bytes of its 44 characters. */
export function keyIdOf(key: ApiKey): KeyId {
  return keccak256(toUtf8Bytes(key)) as KeyId;
}

/** The alternative key id: keccak256 of the 32 decoded bytes; looked up only when `keyIdOf` is unknown on chain. */
export function decodedKeyIdOf(key: ApiKey): KeyId {
  return keccak256(Buffer.from(key, "base64")) as KeyId;
}

/** The address of the wallet that has the key as its secret. */
export function walletAddressOf(key: ApiKey): Address {
  return computeAddress(new SigningKey(Buffer.from(key, "base64"))) as Address;
}

/** The account id of a wallet's own account: keccak256 of its 20 packed bytes. */
export function packedAccountId(owner: Address): AccountId {
  return keccak256(solidityPacked(["address"], [owner])) as AccountId;
}

/** An action's id on chain: keccak256 of the UTF-8 bytes of the CID text. */
export function actionHashOf(cid: Cid): ActionHash {
  return keccak256(toUtf8Bytes(cid)) as ActionHash;
}

export const PathKind = { pkp: 1, usageKey: 2 } as const;
export type PathKind = (typeof PathKind)[keyof typeof PathKind];

/** The low 16 bytes of a path or an account id: a format, which separates no accounts, since payers choose ids. */
const tailOf = (word: DerivationPath | AccountId): string => word.slice(34);

/** Assembles a derivation path: kind ‖ 15 random bytes ‖ low 16 bytes of the account id. */
export function derivationPath(kind: PathKind, random: Uint8Array, account: AccountId): DerivationPath {
  if (random.length !== 15) throw new RangeError("a derivation path takes 15 random bytes");
  const kindHex = kind.toString(16).padStart(2, "0");
  return `0x${kindHex}${Buffer.from(random).toString("hex")}${tailOf(account)}` as DerivationPath;
}

/** Whether the path has the format of the account's paths. Paths of other accounts may have it, too. */
export const hasTailOf = (account: AccountId, path: DerivationPath): boolean => tailOf(path) === tailOf(account);

/** The kind of a path, if it is known and the path's tail is that of `account`. */
export function pathKindFor(path: DerivationPath, account: AccountId): PathKind | undefined {
  if (!hasTailOf(account, path)) return undefined;
  const kind = Number.parseInt(path.slice(2, 4), 16);
  return kind === PathKind.pkp || kind === PathKind.usageKey ? kind : undefined;
}
