/**
 * secp256k1 by the native library: ten times faster than JavaScript, and no BigInt of a secret is left in memory.
 * Imports the binding directly: the package's entry point silently falls back to JavaScript, but a start without the
 * native library has to fail. ECDSA is deterministic (RFC 6979) with low s.
 */
import { ecdsaSign, publicKeyConvert, publicKeyCreate } from "secp256k1/bindings";
import { getAddress, keccak256 } from "ethers";
import type { Address } from "../../protocol/ids";

export interface EcdsaSignature {
  /** 0x and 64 hex digits each. */
  readonly r: string;
  readonly s: string;
  readonly yParity: 0 | 1;
}

/** Signs a 32-byte digest. */
export function signDigest(secret: Uint8Array, digest: Uint8Array): EcdsaSignature {
  const { signature, recid } = ecdsaSign(digest, secret);
  const bytes = Buffer.from(signature);
  return { r: hex(bytes.subarray(0, 32)), s: hex(bytes.subarray(32)), yParity: recid === 0 ? 0 : 1 };
}

/** 65 bytes as wallets encode them: r ‖ s ‖ v with v 27 or 28. */
export function serializeSignature(signature: EcdsaSignature): string {
  return `${signature.r}${signature.s.slice(2)}${signature.yParity === 0 ? "1b" : "1c"}`;
}

/** The uncompressed public key: 0x04 and 128 further hex digits. */
export function publicKeyOf(secret: Uint8Array): string {
  return hex(publicKeyCreate(secret, false));
}

export function addressOf(secret: Uint8Array): Address {
  const point = publicKeyConvert(publicKeyCreate(secret), false);
  return getAddress(`0x${keccak256(point.subarray(1)).slice(-40)}`) as Address;
}

function hex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
