/**
 * What the SDK uses of an ethers signer and provider (version 6), by shape, so that its types need no copy of ethers:
 * every `Signer` and `Provider` of ethers fits.
 */

/** The used part of a mined transaction's receipt. */
export interface Receipt {
  readonly hash: string;
  readonly blockNumber: number;
  /** 0 when it reverted. */
  readonly status?: number | null;
  readonly logs: readonly ReceiptLog[];
}

export interface ReceiptLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

interface TransactionFields {
  readonly from?: string;
  readonly to: string;
  readonly data: string;
  readonly nonce?: number;
  readonly chainId?: bigint;
}

/** Reads the service's chain. */
export interface OwnerProvider {
  getNetwork(): Promise<{ readonly chainId: bigint }>;
  call(transaction: TransactionFields): Promise<string>;
  estimateGas(transaction: TransactionFields): Promise<bigint>;
  /** Prices in wei. */
  getFeeData(): Promise<{ readonly gasPrice: bigint | null; readonly maxFeePerGas: bigint | null }>;
  /** The time-out is in milliseconds. */
  waitForTransaction(hash: string, confirmations?: number, timeoutMs?: number): Promise<Receipt | null>;
  /**
   * Null while the node does not know it. Needed only where the service pays the gas: shows that the transaction which
   * it names has the owner's call.
   */
  getTransaction?(hash: string): Promise<{ readonly to: string | null; readonly data: string } | null>;
}

export type TypedDataSigner = Pick<OwnerSigner, "getAddress" | "signTypedData">;

/** The owner's wallet. */
export interface OwnerSigner {
  readonly provider: OwnerProvider | null;
  getAddress(): Promise<string>;
  getNonce(blockTag?: "pending"): Promise<number>;
  signTypedData(
    domain: object,
    types: Record<string, { name: string; type: string }[]>,
    value: Record<string, unknown>,
  ): Promise<string>;
  sendTransaction(transaction: TransactionFields): Promise<{
    readonly hash: string;
    readonly nonce: number;
    wait(confirmations?: number, timeoutMs?: number): Promise<Receipt | null>;
  }>;
}
