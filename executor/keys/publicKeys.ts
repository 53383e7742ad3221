/** The public key on each curve in the usual formats: hex, JWK, addresses. */
import { bech32m, base58 } from "@scure/base";
import { computeAddress } from "ethers";
import type { Curve } from "../../protocol/curves";
import type { Jwk, PublicKeyEntry } from "../../protocol/publicKeys";
import { bip340PublicKey, taprootOutputKey } from "./bip340";
import { ed25519PublicKey } from "./ed25519";
import { p256PublicKey } from "./p256";
import { publicKeyOf } from "./secp256k1";
import { defined } from "../../protocol/defined";

const NO_SCRIPTS = Buffer.alloc(0);
const TAPROOT_VERSION = 1;

const OF_CURVE: Record<Curve, (secret: Buffer) => Buffer> = {
  secp256k1: (secret) => Buffer.from(publicKeyOf(secret).slice(2), "hex"),
  ed25519: ed25519PublicKey,
  bip340: bip340PublicKey,
  p256: p256PublicKey,
};

/** 0x and hex: 65 bytes 04 ‖ x ‖ y for secp256k1 and p256, 32 bytes for ed25519 and (x-only) bip340. */
export function publicKeyOn(curve: Curve, secret: Buffer): string {
  return hex(OF_CURVE[curve](secret));
}

export function publicKeyEntry(curve: Curve, secret: Buffer): PublicKeyEntry {
  const key = OF_CURVE[curve](secret);
  const jwk = jwkOf(curve, key);
  return { curve, public_key: hex(key), ...defined({ jwk }), addresses: addressesOf(curve, key) };
}

function addressesOf(curve: Curve, key: Buffer): PublicKeyEntry["addresses"] {
  switch (curve) {
    case "secp256k1":
      return { ethereum: computeAddress(hex(key)) };
    case "ed25519":
      return { solana: base58.encode(key) };
    case "bip340":
      return { bitcoin_p2tr: p2tr("bc", key), bitcoin_testnet_p2tr: p2tr("tb", key) };
    case "p256":
      return {};
  }
}

/** BIP-86: key path only, no scripts. BIP-350: witness version 1 and above use bech32m. */
function p2tr(network: string, internalKey: Buffer): string {
  return bech32m.encode(network, [TAPROOT_VERSION, ...bech32m.toWords(taprootOutputKey(internalKey, NO_SCRIPTS))]);
}

/** RFC 7517, RFC 8037 and RFC 8812; no JWK is registered for x-only keys. */
function jwkOf(curve: Curve, key: Buffer): Jwk | undefined {
  if (curve === "bip340") return undefined;
  if (curve === "ed25519") return { kty: "OKP", crv: "Ed25519", x: key.toString("base64url") };
  const [x, y] = [key.subarray(1, 33), key.subarray(33)];
  return {
    kty: "EC",
    crv: curve === "p256" ? "P-256" : "secp256k1",
    x: x.toString("base64url"),
    y: y.toString("base64url"),
  };
}

function hex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
