/**
 * Ed25519 (RFC 8032, deterministic) by OpenSSL through Node. The key is passed as PKCS #8 in a buffer that is
 * zero-filled afterwards; OpenSSL clears its own copy when it frees it.
 */
import { createPrivateKey, createPublicKey, sign } from "node:crypto";

/** PKCS #8 prefix of an Ed25519 private key, before its 32 bytes (RFC 8410). */
const PKCS8_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const SEED_BYTES = 32;

/** The 64 bytes R ‖ S over a message of any length, which is not prehashed. */
export function signEd25519(seed: Uint8Array, message: Uint8Array): Buffer {
  return withPkcs8(seed, (key) => sign(null, message, { key, format: "der", type: "pkcs8" }));
}

/** The 32 bytes of the public key. */
export function ed25519PublicKey(seed: Uint8Array): Buffer {
  const spki = withPkcs8(seed, (key) =>
    createPublicKey(createPrivateKey({ key, format: "der", type: "pkcs8" })).export({ format: "der", type: "spki" }),
  );
  return spki.subarray(-SEED_BYTES);
}

/** Passes the key as PKCS #8 (DER), in a buffer that is zero-filled afterwards. */
export function withPkcs8<T>(seed: Uint8Array, use: (der: Buffer) => T): T {
  // Buffer.alloc, not Buffer.concat: the latter takes small buffers from a shared pool.
  const der = Buffer.alloc(PKCS8_HEAD.length + SEED_BYTES);
  der.set(PKCS8_HEAD);
  der.set(seed, PKCS8_HEAD.length);
  try {
    return use(der);
  } finally {
    der.fill(0);
  }
}
