/** How deep in the chain a lease must be, by network. */

export interface LeaseDepth {
  /** Blocks that a lease needs, its own included, before anything is spent of it. */
  readonly confirmations: number;
  /** Depth at which a lease is not looked at again. */
  readonly final: number;
  /** How many blocks leases are looked for in: the newest, and as many around the last look. */
  readonly searched: number;
}

/** Ethereum reorganizes a block or two at times; rollups follow one sequencer; Polygon has reorganized dozens. */
const KNOWN: Readonly<Record<string, LeaseDepth>> = {
  "1": { confirmations: 3, final: 64, searched: 128 },
  "11155111": { confirmations: 3, final: 64, searched: 128 },
  "10": { confirmations: 2, final: 150, searched: 300 },
  "8453": { confirmations: 2, final: 150, searched: 300 },
  "84532": { confirmations: 2, final: 150, searched: 300 },
  "137": { confirmations: 32, final: 256, searched: 512 },
  "42161": { confirmations: 4, final: 480, searched: 960 },
  "421614": { confirmations: 4, final: 480, searched: 960 },
  "31337": { confirmations: 1, final: 64, searched: 128 },
};
const OTHERS: LeaseDepth = { confirmations: 6, final: 128, searched: 256 };

export function leaseDepthOf(chainId: bigint, confirmations: number | undefined): LeaseDepth {
  const known = KNOWN[chainId.toString()] ?? OTHERS;
  if (confirmations === undefined) return known;
  const final = Math.max(known.final, 2 * confirmations);
  return { confirmations, final, searched: 2 * final };
}
