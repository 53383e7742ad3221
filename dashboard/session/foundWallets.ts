import { createStore } from "mipd";
import { useSyncExternalStore } from "react";
import type { FoundWallet } from "./types";

const store = createStore();

/** Every wallet that has announced itself to this page (EIP-6963). */
export const useWallets = (): readonly FoundWallet[] => useSyncExternalStore(store.subscribe, store.getProviders);

/** The wallet code, loaded on first use. */
export const walletTools = () => import("./wallets");
