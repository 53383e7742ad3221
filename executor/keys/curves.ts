/** One row for each key type: how its secret is made, and its public key in the usual formats: hex, JWK, addresses. */
import { bech32m, base58 } from "@scure/base";
import { computeAddress } from "ethers";
import type { Curve } from "../../protocol/curves";
import { defined } from "../../protocol/defined";
import type { Jwk, PublicKeyEntry } from "../../protocol/publicKeys";
import { bip340PublicKey, taprootOutputKey } from "./bip340";
import { ed25519PublicKey } from "./ed25519";
import { p256PublicKey } from "./p256";
import { ORDERS_MINUS_ONE } from "./scalar";
import { publicKeyOf } from "./secp256k1";

interface CurveRow {
  /** The order minus one that a secret scalar is reduced by; undefined for a seed. */
  readonly orderMinusOne: Uint32Array | undefined;
  /** 65 bytes 04 ‖ x ‖ y for secp256k1 and p256, 32 bytes for ed25519 and (x-only) bip340. */
  readonly publicKey: (secret: Buffer) => Buffer;
  /** RFC 7517, RFC 8037 and RFC 8812; no JWK is registered for x-only keys. */
  readonly jwk?: (publicKey: Buffer) => Jwk;
  readonly addresses: (publicKey: Buffer) => PublicKeyEntry["addresses"];
}

const CURVE_ROWS: Readonly<Record<Curve, CurveRow>> = {
  secp256k1: {
    orderMinusOne: ORDERS_MINUS_ONE.secp256k1,
    publicKey: (secret) => Buffer.from(publicKeyOf(secret).slice(2), "hex"),
    jwk: (key) => pointJwk("secp256k1", key),
    addresses: (key) => ({ ethereum: computeAddress(hex(key)) }),
  },
  ed25519: {
    orderMinusOne: undefined,
    publicKey: ed25519PublicKey,
    jwk: (key) => ({ kty: "OKP", crv: "Ed25519", x: key.toString("base64url") }),
    addresses: (key) => ({ solana: base58.encode(key) }),
  },
  bip340: {
    orderMinusOne: ORDERS_MINUS_ONE.secp256k1,
    publicKey: bip340PublicKey,
    addresses: (key) => ({ bitcoin_p2tr: p2tr("bc", key), bitcoin_testnet_p2tr: p2tr("tb", key) }),
  },
  p256: {
    orderMinusOne: ORDERS_MINUS_ONE.p256,
    publicKey: p256PublicKey,
    jwk: (key) => pointJwk("P-256", key),
    addresses: () => ({}),
  },
};

export const orderMinusOneOf = (curve: Curve): Uint32Array | undefined => CURVE_ROWS[curve].orderMinusOne;

/** 0x and hex. */
export const publicKeyOn = (curve: Curve, secret: Buffer): string => hex(CURVE_ROWS[curve].publicKey(secret));

export function publicKeyEntry(curve: Curve, secret: Buffer): PublicKeyEntry {
  const { publicKey, jwk, addresses } = CURVE_ROWS[curve];
  const key = publicKey(secret);
  return { curve, public_key: hex(key), ...defined({ jwk: jwk?.(key) }), addresses: addresses(key) };
}

const NO_SCRIPTS = Buffer.alloc(0);
const TAPROOT_VERSION = 1;

/** BIP-86: key path only, no scripts. BIP-350: witness version 1 and above use bech32m. */
function p2tr(network: string, internalKey: Buffer): string {
  return bech32m.encode(network, [TAPROOT_VERSION, ...bech32m.toWords(taprootOutputKey(internalKey, NO_SCRIPTS))]);
}

function pointJwk(crv: "secp256k1" | "P-256", key: Buffer): Jwk {
  return {
    kty: "EC",
    crv,
    x: key.subarray(1, 33).toString("base64url"),
    y: key.subarray(33).toString("base64url"),
  };
}

function hex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
