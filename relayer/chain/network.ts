import { keyNamespaceOf } from "../../protocol/namespace";
import type { Address } from "../../protocol/ids";
import type { NetworkFacts } from "./types";

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
  return { chainId, ...known, contractAddress, keyNamespace: keyNamespaceOf(chainId, contractAddress) };
}
