/**
 * A second implementation of every key derivation from the root: @noble/hashes, @noble/curves, multiformats and BigInt,
 * sharing no code with the service's.
 */
import { ed25519 } from "@noble/curves/ed25519";
import { p256 } from "@noble/curves/nist";
import { schnorr, secp256k1 } from "@noble/curves/secp256k1";
import { hkdf } from "@noble/hashes/hkdf";
import { sha256 } from "@noble/hashes/sha256";
import type { Curve } from "../../protocol/curves";

export interface KeyInput {
  root: string;
  namespace: string;
  kind: string;
  /** Hex. */
  name: readonly string[];
}

export const bytes = (hex: string): Buffer => Buffer.from(hex.replace(/^0x/, ""), "hex");
export const hexOf = (data: Uint8Array): string => `0x${Buffer.from(data).toString("hex")}`;

export function nobleOkm({ root, namespace, kind, name }: KeyInput): Buffer {
  const parts = [Buffer.from("v1"), bytes(namespace), Buffer.from(kind), ...name.map(bytes)];
  const info = Buffer.concat(parts.flatMap((part) => [Buffer.from([part.length >> 8, part.length & 255]), part]));
  return Buffer.from(hkdf(sha256, bytes(root), undefined, info, 48));
}

const ORDERS: Record<Exclude<Curve, "ed25519">, bigint> = {
  secp256k1: secp256k1.Point.Fn.ORDER,
  bip340: secp256k1.Point.Fn.ORDER,
  p256: p256.Point.Fn.ORDER,
};

/** The secret on a curve: a seed for Ed25519, a scalar otherwise. */
export function nobleSecret(curve: Curve, okm: Uint8Array): Buffer {
  if (curve === "ed25519") return Buffer.from(okm.subarray(0, 32));
  const scalar = 1n + (BigInt(hexOf(okm)) % (ORDERS[curve] - 1n));
  return Buffer.from(scalar.toString(16).padStart(64, "0"), "hex");
}

export function noblePublicKey(curve: Curve, secret: Uint8Array): string {
  const key = { ed25519: () => ed25519.getPublicKey(secret), bip340: () => schnorr.getPublicKey(secret) };
  if (curve === "ed25519" || curve === "bip340") return hexOf(key[curve]());
  return hexOf((curve === "p256" ? p256 : secp256k1).getPublicKey(secret, false));
}

/** Whether a signature (64 bytes of hex) over a message (Ed25519) or digest is the key's. */
export function nobleVerify(
  curve: Exclude<Curve, "secp256k1">,
  publicKey: string,
  signature: string,
  signed: Uint8Array,
): boolean {
  const [key, mark] = [bytes(publicKey), bytes(signature)];
  if (curve === "ed25519") return ed25519.verify(mark, signed, key);
  return curve === "bip340" ? schnorr.verify(mark, signed, key) : p256.verify(mark, signed, key, { lowS: true });
}
