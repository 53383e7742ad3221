/**
 * The ops an action may request with a PKP, and the bit with which the PKP's owner denies each on chain (`setPkpOps`),
 * for contract, executor, API and SDK. Bits are never reassigned; a new op takes the next one.
 */
export const PKP_OPS = {
  signMessage: 1n,
  signTypedData: 2n,
  signTransaction: 4n,
  signDigest: 8n,
  Encrypt: 16n,
  Decrypt: 32n,
  getPrivateKey: 64n,
  signEd25519: 128n,
  signSchnorr: 256n,
  signP256: 512n,
} as const;

export type PkpOp = keyof typeof PKP_OPS;
export const PKP_OP_NAMES = Object.keys(PKP_OPS) as PkpOp[];

/** The bits of all known ops. */
export const ALL_PKP_OPS = PKP_OP_NAMES.reduce((bits, name) => bits | PKP_OPS[name], 0n);

export const opBits = (names: readonly PkpOp[]): bigint => names.reduce((bits, name) => bits | PKP_OPS[name], 0n);

/** Names of the ops in a set, in the table's order; bits without an op appear as hex. */
export function opNames(bits: bigint): string[] {
  const known: string[] = PKP_OP_NAMES.filter((name) => (bits & PKP_OPS[name]) !== 0n);
  for (let bit = ALL_PKP_OPS + 1n, rest = bits / bit; rest > 0n; bit <<= 1n, rest >>= 1n) {
    if (rest & 1n) known.push(`0x${bit.toString(16)}`);
  }
  return known;
}

export const isDenied = (deniedOps: bigint, op: PkpOp): boolean => (deniedOps & PKP_OPS[op]) !== 0n;
