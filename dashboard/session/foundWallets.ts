import { createStore, type EIP6963ProviderDetail } from "mipd";
import { useSyncExternalStore } from "react";

export type FoundWallet = EIP6963ProviderDetail;

const store = createStore();

/** Every wallet that has announced itself to this page (EIP-6963). */
export const useWallets = (): readonly FoundWallet[] => useSyncExternalStore(store.subscribe, store.getProviders);

export interface Connection {
  readonly detail: FoundWallet;
  readonly address: string;
}

/** What it takes to use one is loaded when one is used. */
export const walletTools = () => import("./wallets");
