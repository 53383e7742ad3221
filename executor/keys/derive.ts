/**
 * The one derivation of all keys of the service: HKDF-SHA256 over the root key, separated by version, key namespace,
 * kind, and what names the key within its kind. The names of an account's keys begin with the whole account id: nothing
 * shorter separates accounts, since whoever creates an account chooses its id.
 * Source: test/vectors/keys.json.
 */
import { hkdfSync } from "node:crypto";
import type { Curve } from "../../protocol/curves";
import { orderMinusOneOf } from "./curves";
import { ORDERS_MINUS_ONE, reduceToSecret } from "./scalar";

/** Curves of the keys that a PKP or an action has besides secp256k1. */
type FurtherKind = Exclude<Curve, "secp256k1">;
/** The purpose of a key. Always a literal in this code, never input of a caller. */
export type KeyKind =
  | "pkp"
  | `pkp/${FurtherKind}`
  | "usage-key"
  | "owner"
  | "payer"
  | "action"
  | `action/${FurtherKind}`
  | "encryption"
  | "write-tag"
  | "statement"
  | "root"
  | "account-key"
  | "api-usage-key"
  | "trigger"
  | "trigger-seal";

/** What distinguishes the keys of a kind. Every kind has a fixed number of parts. */
export type KeyName = readonly Buffer[];

export const ROOT_KEY_BYTES = 32;
const OKM_BYTES = 48;
const SYMMETRIC_BYTES = 32;
const VERSION = Buffer.from("v1", "ascii");
const NO_SALT = Buffer.alloc(0);

/** 48 bytes of key material. The caller zero-fills them. */
function deriveMaterial(root: Buffer, namespace: Buffer, kind: KeyKind, name: KeyName): Buffer {
  const info = Buffer.concat([VERSION, namespace, Buffer.from(kind, "ascii"), ...name].map(lengthPrefixed));
  return Buffer.from(hkdfSync("sha256", root, NO_SALT, info, OKM_BYTES));
}

/** A secret scalar of 32 bytes, 1 + (okm mod (n − 1)), with n the order of the curve. The caller zero-fills it. */
export function deriveSecret(
  root: Buffer,
  namespace: Buffer,
  kind: KeyKind,
  name: KeyName,
  orderMinusOne: Uint32Array = ORDERS_MINUS_ONE.secp256k1,
): Buffer {
  const material = deriveMaterial(root, namespace, kind, name);
  const secret = reduceToSecret(material, orderMinusOne);
  material.fill(0);
  return secret;
}

/** A symmetric key or an Ed25519 seed: the first 32 bytes of the material. The caller zero-fills it. */
export function deriveSymmetric(root: Buffer, namespace: Buffer, kind: KeyKind, name: KeyName): Buffer {
  const material = deriveMaterial(root, namespace, kind, name);
  // Buffer.alloc, not Buffer.from: the latter takes small buffers from a shared pool.
  const key = Buffer.alloc(SYMMETRIC_BYTES, material.subarray(0, SYMMETRIC_BYTES));
  material.fill(0);
  return key;
}

/** The kind of an owner's key on a curve. secp256k1 has no suffix, as the PKP's id is its address. */
export function kindOf(owner: "pkp" | "action", curve: Curve): KeyKind {
  return curve === "secp256k1" ? owner : `${owner}/${curve}`;
}

/** The secret in the form its curve needs: a seed for Ed25519, otherwise a scalar. The caller zero-fills it. */
export function deriveForCurve(
  root: Buffer,
  namespace: Buffer,
  owner: "pkp" | "action",
  curve: Curve,
  name: KeyName,
): Buffer {
  const kind = kindOf(owner, curve);
  const orderMinusOne = orderMinusOneOf(curve);
  return orderMinusOne === undefined
    ? deriveSymmetric(root, namespace, kind, name)
    : deriveSecret(root, namespace, kind, name, orderMinusOne);
}

/** u16 big-endian length, then the bytes, so that different lists of parts never encode the same. */
function lengthPrefixed(part: Buffer): Buffer {
  if (part.length > 0xffff) throw new RangeError("a derivation part is at most 65,535 bytes");
  const length = Buffer.alloc(2);
  length.writeUInt16BE(part.length);
  return Buffer.concat([length, part]);
}
