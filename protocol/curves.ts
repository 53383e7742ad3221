/** The key pairs of a PKP, named by curve or scheme, the same in ops, answers and documentation. */
export const CURVES = ["secp256k1", "ed25519", "bip340", "p256"] as const;
export type Curve = (typeof CURVES)[number];
