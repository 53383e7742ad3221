import type { EIP6963ProviderDetail } from "mipd";
import type { Answer, ChainSecuredClient, Client } from "../../client";

export type Account = Answer<"account">;
export type ChainConfig = Answer<"getNodeChainConfig">;

/** A key known to this tab: the one used to sign in, or a usage key made here. In memory only. */
export interface KnownKey {
  readonly name: string;
  readonly hash: string;
  readonly key: string;
}

/** Signed in with a key: the account's own, or a usage key. */
export interface KeySession {
  readonly kind: "key";
  readonly account: Account;
  readonly config: ChainConfig;
  readonly client: Client;
  readonly key: string;
  /** True for the account's own key, which may do everything. */
  readonly isOwner: boolean;
}

/** Signed in with the wallet that owns a ChainSecured account, or preparing changes for the multisig that does. */
export interface WalletSession {
  readonly kind: "wallet";
  readonly account: Account;
  readonly config: ChainConfig;
  /** Sends from the wallet. */
  readonly owner: ChainSecuredClient;
  /** Has the service send what the wallet only signs. */
  readonly byService: ChainSecuredClient;
  readonly wallet: ConnectedWallet;
  readonly isOwner: true;
}

export type Session = KeySession | WalletSession;

export interface ConnectedWallet {
  readonly name: string;
  readonly address: string;
  /** True when the account belongs to a multisig: its changes are made as a file for its signers. */
  readonly forSafe: boolean;
  /** The wallet's native coin balance, in wei. */
  readonly balance: () => Promise<bigint>;
  /**
   * Resolves when the wallet is on the service's chain with the account signed in with; otherwise asks its user to
   * switch back.
   */
  readonly ready: () => Promise<void>;
}

/** A wallet announced by EIP-6963. */
export type FoundWallet = EIP6963ProviderDetail;

/** A wallet connected to this page with an account. */
export interface Connection {
  readonly detail: FoundWallet;
  readonly address: string;
}
