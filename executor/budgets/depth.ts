/** How deep in the chain a lease must be, by network, and how long that may take. */

export interface LeaseDepth {
  /** Blocks that a lease needs, its own included, before anything is spent of it. */
  readonly confirmations: number;
  /** Depth at which a lease is not looked at again. */
  readonly final: number;
  /** How many blocks leases are looked for in: the newest, and as many around the last look. */
  readonly searched: number;
  /** How long a spend waits for a lease: twice what its blocks take, as it has to be sent and carried out first. */
  readonly patienceMs: number;
}

type Network = Pick<LeaseDepth, "confirmations" | "final"> & { readonly blockMs: number };

const ETHEREUM: Network = { confirmations: 3, final: 64, blockMs: 12_000 };
const OP_CHAIN: Network = { confirmations: 2, final: 150, blockMs: 2_000 };
const ARBITRUM: Network = { confirmations: 4, final: 480, blockMs: 250 };
/**
 * Ethereum reorganizes a block or two at times; rollups follow one sequencer. Polygon has reorganized dozens; since its
 * validators agree on each few blocks, within seconds, 16 leave room for when they are late.
 */
const KNOWN: Readonly<Record<string, Network>> = {
  "1": ETHEREUM,
  "11155111": ETHEREUM,
  "10": OP_CHAIN,
  "8453": OP_CHAIN,
  "84532": OP_CHAIN,
  "137": { confirmations: 16, final: 256, blockMs: 2_000 },
  "42161": ARBITRUM,
  "421614": ARBITRUM,
  "31337": { confirmations: 1, final: 64, blockMs: 1_000 },
};
const OTHERS: Network = { confirmations: 6, final: 128, blockMs: 12_000 };
const LEAST_PATIENCE_MS = 60_000;

export function leaseDepthOf(chainId: bigint, stated: number | undefined): LeaseDepth {
  const known = KNOWN[chainId.toString()] ?? OTHERS;
  const confirmations = stated ?? known.confirmations;
  const final = stated === undefined ? known.final : Math.max(known.final, 2 * stated);
  const patienceMs = Math.max(LEAST_PATIENCE_MS, 2 * confirmations * known.blockMs);
  return { confirmations, final, searched: 2 * final, patienceMs };
}
