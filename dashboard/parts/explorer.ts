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

export function explorerOf(
  { chain_id: chainId }: { readonly chain_id: number },
  kind: "address" | "tx",
  id: string,
): string | undefined {
  const origin = EXPLORERS[chainId];
  return origin === undefined ? undefined : `${origin}/${kind}/${id}`;
}
