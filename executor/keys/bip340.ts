/**
 * Schnorr signatures of BIP-340 and the taproot tweak of BIP-341, by libsecp256k1 compiled to WebAssembly: constant
 * time, and it clears its inputs after each call.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  pointFromScalar,
  privateAdd,
  privateNegate,
  signSchnorr as sign,
  xOnlyPointAddTweak,
  xOnlyPointFromScalar,
} from "tiny-secp256k1";

const ODD_Y = 0x03;
const AUX_BYTES = 32;
const TAP_TWEAK_TAG = createHash("sha256").update("TapTweak").digest();

/**
 * The 64-byte signature of a 32-byte digest. `aux` is BIP-340's auxiliary randomness, fresh by default: it protects the
 * key from fault and side-channel attacks and is not needed to verify.
 */
export function signSchnorr(secret: Uint8Array, digest: Uint8Array, aux: Uint8Array = randomBytes(AUX_BYTES)): Buffer {
  return Buffer.from(sign(digest, secret, aux));
}

/** The 32 bytes of the x-only public key. */
export function bip340PublicKey(secret: Uint8Array): Buffer {
  return Buffer.from(xOnlyPointFromScalar(secret));
}

/**
 * Runs `use` with the secret of the taproot output key: the internal key tweaked with the root of a script tree, or
 * with the key alone when `merkleRoot` is empty (BIP-86). The tweaked secret is zero-filled afterwards.
 */
export function withTaprootSecret<T>(secret: Uint8Array, merkleRoot: Uint8Array, use: (tweaked: Uint8Array) => T): T {
  const point = pointFromScalar(secret, true);
  const even = point?.[0] === ODD_Y ? privateNegate(secret) : Uint8Array.from(secret);
  const tweaked = privateAdd(even, tapTweak(bip340PublicKey(secret), merkleRoot));
  even.fill(0);
  if (tweaked === null) throw new RangeError("this merkle root tweaks the key to zero");
  try {
    return use(tweaked);
  } finally {
    tweaked.fill(0);
  }
}

/** The 32 bytes of the taproot output key, as encoded in a P2TR address. */
export function taprootOutputKey(internalKey: Uint8Array, merkleRoot: Uint8Array): Buffer {
  const tweaked = xOnlyPointAddTweak(internalKey, tapTweak(internalKey, merkleRoot));
  if (tweaked === null) throw new RangeError("this merkle root tweaks the key to zero");
  return Buffer.from(tweaked.xOnlyPubkey);
}

function tapTweak(internalKey: Uint8Array, merkleRoot: Uint8Array): Buffer {
  return createHash("sha256")
    .update(TAP_TWEAK_TAG)
    .update(TAP_TWEAK_TAG)
    .update(internalKey)
    .update(merkleRoot)
    .digest();
}
