/**
 * Key types of a PKP, by the name that ops, answers and docs call their "curve". bip340 is a signature scheme on
 * secp256k1, with a key of its own. What each needs is a row of `executor/keys/curves.ts`.
 */
export const CURVES = ["secp256k1", "ed25519", "bip340", "p256"] as const;
export type Curve = (typeof CURVES)[number];
