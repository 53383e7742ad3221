/**
 * ECDSA over P-256, deterministic (RFC 6979 with HMAC-SHA-256) with low s. OpenSSL's own ECDSA takes a random nonce, and Node offers no other; so an audited
 * library signs. The public key comes from OpenSSL.
 */
import { p256 } from "@noble/curves/nist";
import { createECDH, createHash } from "node:crypto";

/** Multiples of the generator, made at the start: the first signature would wait for them, and with it every op of the process. */
p256.Point.BASE.precompute(8, false);

/** The 64 bytes r ‖ s over a 32-byte digest. */
export function signP256(secret: Uint8Array, digest: Uint8Array): Buffer {
  return Buffer.from(p256.sign(digest, secret, { lowS: true, prehash: false }).toBytes("compact"));
}

/** The digest ES256 signs. */
export const p256Digest = (message: Uint8Array): Buffer => createHash("sha256").update(message).digest();

/** The 65 bytes of the uncompressed public key: 04 ‖ x ‖ y. */
export function p256PublicKey(secret: Buffer): Buffer {
  const ecdh = createECDH("prime256v1");
  ecdh.setPrivateKey(secret);
  return ecdh.getPublicKey();
}
