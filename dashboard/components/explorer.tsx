import type { ReactNode } from "react";
import { Id } from "./elements";

/** Block explorers of common chains; other chains have none here. */
const EXPLORERS: Readonly<Record<number, string>> = {
  1: "https://etherscan.io",
  10: "https://optimistic.etherscan.io",
  100: "https://gnosisscan.io",
  137: "https://polygonscan.com",
  8453: "https://basescan.org",
  42161: "https://arbiscan.io",
  84532: "https://sepolia.basescan.org",
  11155111: "https://sepolia.etherscan.io",
};

interface Chain {
  readonly chain_id: number;
}

function explorerOf({ chain_id: chainId }: Chain, kind: "address" | "tx", id: string): string | undefined {
  const origin = EXPLORERS[chainId];
  return origin === undefined ? undefined : `${origin}/${kind}/${id}`;
}

interface AddressProps {
  readonly chain: Chain;
  readonly value: string;
  readonly what: string;
  readonly whole?: boolean;
}

/** An address with its explorer's page, where the chain has one. */
export function Address({ chain, value, ...rest }: AddressProps): ReactNode {
  return <Id value={value} href={explorerOf(chain, "address", value)} {...rest} />;
}

export function Transaction({ chain, hash }: { readonly chain: Chain; readonly hash: string }): ReactNode {
  return <Id value={hash} what="transaction" href={explorerOf(chain, "tx", hash)} />;
}
