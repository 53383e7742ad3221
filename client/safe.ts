/**
 * Owner writes as a file for Safe's Transaction Builder (batch format 1.0): the signers of a multisig load it, see the calls, sign and execute.
 * Source: the Transaction Builder app; specification §2: "An account owner may be an EOA, … or a multisig or governance contract".
 */
import type { Address } from "../protocol/ids";

/** A call as any wallet or multisig takes it: `value` in wei, always "0" here. */
export interface OwnerTransaction {
  readonly to: Address;
  readonly value: "0";
  readonly data: string;
}

export interface SafeBatchFile {
  readonly version: "1.0";
  /** Decimal. */
  readonly chainId: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  readonly meta: { readonly name: string; readonly description: string; readonly createdFromSafeAddress?: Address };
  readonly transactions: readonly (OwnerTransaction & { readonly contractMethod: null; readonly contractInputsValues: null })[];
}

export interface SafeBatchMeta {
  /** What the signers see as the batch's title. */
  readonly name: string;
  readonly description?: string;
  readonly safe?: Address;
}

export function safeBatchFile(chainId: bigint, transactions: readonly OwnerTransaction[], meta: SafeBatchMeta): SafeBatchFile {
  return {
    version: "1.0",
    chainId: chainId.toString(),
    createdAt: Date.now(),
    meta: { name: meta.name, description: meta.description ?? "", ...(meta.safe === undefined ? {} : { createdFromSafeAddress: meta.safe }) },
    transactions: transactions.map((transaction) => ({ ...transaction, contractMethod: null, contractInputsValues: null })),
  };
}
