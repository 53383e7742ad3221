import type { EIP6963ProviderDetail } from "mipd";
import type { Answer, ChainSecuredClient, Client } from "../../client";

export type Account = Answer<"account">;
export type ChainConfig = Answer<"getNodeChainConfig">;

/** A key that this tab knows: the one signed in with, or a usage key made here. In memory only. */
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
  /** The account's own key, which may do everything. */
  readonly isOwner: boolean;
}

/** Signed in with the wallet that owns a ChainSecured account, or preparing for the multisig that does. */
export interface WalletSession {
  readonly kind: "wallet";
  readonly account: Account;
  readonly config: ChainConfig;
  readonly owner: ChainSecuredClient;
  readonly wallet: ConnectedWallet;
  readonly isOwner: true;
}

export type Session = KeySession | WalletSession;

export interface ConnectedWallet {
  readonly name: string;
  readonly address: string;
  /** True when the account belongs to a multisig: its changes are made as a file for its signers. */
  readonly forSafe: boolean;
  /** What the wallet holds of the chain's coin, in wei. */
  readonly balance: () => Promise<bigint>;
}

/** A wallet as it announces itself (EIP-6963). */
export type FoundWallet = EIP6963ProviderDetail;

/** A wallet that has shown an account to this page. */
export interface Connection {
  readonly detail: FoundWallet;
  readonly address: string;
}
