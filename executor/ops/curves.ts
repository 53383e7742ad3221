/** Signatures other than ECDSA over secp256k1: each 64 bytes, as one hex string. */
import { signSchnorr, withTaprootSecret } from "../keys/bip340";
import { signEd25519 } from "../keys/ed25519";
import { p256Digest, signP256 } from "../keys/p256";
import { OpRefusal } from "./refusal";

/** RFC 8032 (pure Ed25519): signs the message itself, without a prefix. */
export function ed25519Signature(secret: Buffer, { message }: { readonly message: Buffer }): string {
  return hex(signEd25519(secret, message));
}

/**
 * BIP-340. With `merkleRoot` the key is the taproot output key: tweaked by that root or, if it is empty, by the
 * internal key alone.
 */
export function schnorrSignature(
  secret: Buffer,
  { digest, merkleRoot }: { readonly digest: Buffer; readonly merkleRoot?: Buffer | undefined },
): string {
  if (merkleRoot === undefined) return hex(signSchnorr(secret, digest));
  return hex(withTaprootSecret(secret, merkleRoot, (tweaked) => signSchnorr(tweaked, digest)));
}

/** ECDSA with low s over the digest, or over SHA-256 of the message: r ‖ s. */
export function p256Signature(
  secret: Buffer,
  { digest, message }: { readonly digest?: Buffer | undefined; readonly message?: Buffer | undefined },
): string {
  const signed = digest ?? (message === undefined ? undefined : p256Digest(message));
  if (signed === undefined) throw new OpRefusal("invalid_arguments", "signP256 needs digest or message");
  return hex(signP256(secret, signed));
}

function hex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString("hex")}`;
}
