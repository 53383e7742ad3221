/**
 * Every key of the service comes out of this one function: HKDF-SHA256 over the root, separated by version, key namespace, kind and path.
 * Source: design of the executor, "Derivation"; vectors in test/vectors/keys.json.
 */
import { hkdfSync } from "node:crypto";
import { reduceToSecret } from "./scalar";

/** What a key is for. The kind is always a literal of our code, never a caller's word. */
export type KeyKind = "pkp" | "usage-key" | "owner" | "payer" | "action" | "encryption" | "write-tag";

export const ROOT_KEY_BYTES = 32;
const OKM_BYTES = 48;
const SYMMETRIC_BYTES = 32;
const VERSION = Buffer.from("v1", "ascii");
const NO_SALT = Buffer.alloc(0);

/** 48 bytes of key material. The caller zero-fills them. */
function deriveMaterial(root: Buffer, namespace: Buffer, kind: KeyKind, path: Buffer): Buffer {
  const info = Buffer.concat([VERSION, namespace, Buffer.from(kind, "ascii"), path].map(lengthPrefixed));
  return Buffer.from(hkdfSync("sha256", root, NO_SALT, info, OKM_BYTES));
}

/** A secp256k1 secret, 1 + (okm mod (n − 1)): 32 bytes the caller zero-fills. */
export function deriveSecret(root: Buffer, namespace: Buffer, kind: KeyKind, path: Buffer): Buffer {
  const material = deriveMaterial(root, namespace, kind, path);
  const secret = reduceToSecret(material);
  material.fill(0);
  return secret;
}

/** A symmetric key, the first 32 bytes of the material. The caller zero-fills it. */
export function deriveSymmetric(root: Buffer, namespace: Buffer, kind: KeyKind, path: Buffer): Buffer {
  const material = deriveMaterial(root, namespace, kind, path);
  // Buffer.alloc and not Buffer.from: small copies come out of a pool that other buffers share.
  const key = Buffer.alloc(SYMMETRIC_BYTES, material.subarray(0, SYMMETRIC_BYTES));
  material.fill(0);
  return key;
}

/** u16 big-endian length, then the bytes: no two different lists of parts have the same encoding. */
export function lengthPrefixed(part: Buffer): Buffer {
  if (part.length > 0xffff) throw new RangeError("a derivation part is at most 65,535 bytes");
  const length = Buffer.alloc(2);
  length.writeUInt16BE(part.length);
  return Buffer.concat([length, part]);
}
