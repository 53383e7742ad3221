import { budgetsAddressOf } from "../../protocol/budgets";
import { keyNamespaceOf } from "../../protocol/namespace";
import type { Address } from "../../protocol/ids";
import type { ChainTuning } from "./settings";
import type { NetworkFacts } from "./types";

/** Per-network defaults; an operator's settings override them. */
export type NetworkTuning = Partial<
  Pick<ChainTuning, "finalityDepth" | "maxFeeCapWei" | "defaultTipWei" | "stuckAfterMs">
>;

const GWEI = 10n ** 9n;

const TUNING: Readonly<Record<string, NetworkTuning>> = {
  // 12 s blocks: a transaction may take several blocks, and nodes may be a block apart.
  "1": { stuckAfterMs: 60_000, finalityDepth: 64 },
  "11155111": { stuckAfterMs: 60_000, finalityDepth: 64 },
  // 2 s blocks, fees of a fraction of a gwei.
  "10": { stuckAfterMs: 15_000, finalityDepth: 150, maxFeeCapWei: 50n * GWEI, defaultTipWei: GWEI / 1_000n },
  "8453": { stuckAfterMs: 15_000, finalityDepth: 150, maxFeeCapWei: 50n * GWEI, defaultTipWei: GWEI / 1_000n },
  "84532": { stuckAfterMs: 15_000, finalityDepth: 150, maxFeeCapWei: 50n * GWEI, defaultTipWei: GWEI / 1_000n },
  // Fees reach thousands of gwei at times; reorgs of dozens of blocks have been observed.
  "137": { stuckAfterMs: 15_000, finalityDepth: 256, maxFeeCapWei: 10_000n * GWEI, defaultTipWei: 30n * GWEI },
  // Four blocks a second, and no tips.
  "42161": { stuckAfterMs: 15_000, finalityDepth: 240, maxFeeCapWei: 50n * GWEI, defaultTipWei: 0n },
  "421614": { stuckAfterMs: 15_000, finalityDepth: 240, maxFeeCapWei: 50n * GWEI, defaultTipWei: 0n },
};

export const networkTuning = (chainId: bigint): NetworkTuning => TUNING[chainId.toString()] ?? {};

interface KnownNetwork {
  readonly chainName: string;
  readonly testnet: boolean;
  readonly token: string;
}

const KNOWN: Readonly<Record<string, KnownNetwork>> = {
  "1": { chainName: "Ethereum", testnet: false, token: "ETH" },
  "10": { chainName: "OP Mainnet", testnet: false, token: "ETH" },
  "137": { chainName: "Polygon", testnet: false, token: "POL" },
  "8453": { chainName: "Base", testnet: false, token: "ETH" },
  "31337": { chainName: "Local development chain", testnet: true, token: "ETH" },
  "42161": { chainName: "Arbitrum One", testnet: false, token: "ETH" },
  "84532": { chainName: "Base Sepolia", testnet: true, token: "ETH" },
  "421614": { chainName: "Arbitrum Sepolia", testnet: true, token: "ETH" },
  "11155111": { chainName: "Sepolia", testnet: true, token: "ETH" },
};

export function networkFacts(chainId: bigint, contractAddress: Address): NetworkFacts {
  const known = KNOWN[chainId.toString()] ?? { chainName: `Chain ${chainId}`, testnet: false, token: "ETH" };
  const keyNamespace = keyNamespaceOf(chainId, contractAddress);
  return { chainId, ...known, contractAddress, keyNamespace, budgetsAddress: budgetsAddressOf(contractAddress) };
}
