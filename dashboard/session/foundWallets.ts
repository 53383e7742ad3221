import { createStore } from "mipd";
import { useSyncExternalStore } from "react";
import type { FoundWallet } from "./types";

const store = createStore();

/** Every wallet that has announced itself to this page (EIP-6963). */
export const useWallets = (): readonly FoundWallet[] => useSyncExternalStore(store.subscribe, store.getProviders);

/** What it takes to use one is loaded when one is used. */
export const walletTools = () => import("./wallets");
