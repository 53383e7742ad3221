/**
 * ECDSA over P-256, deterministic (RFC 6979 with HMAC-SHA-256) with low s, by an audited library: OpenSSL's ECDSA uses
 * a random nonce, and Node offers no other. The public key comes from OpenSSL.
 */
import { p256 } from "@noble/curves/nist";
import { createECDH, createHash } from "node:crypto";

/** Precomputed at start: the first signature would block the event loop, and with it every op of the process. */
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
