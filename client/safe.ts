/**
 * Owner writes as a file for Safe's Transaction Builder (batch format 1.0): the signers of a multisig load it, see the
 * calls, sign and execute.
 * Source: the Transaction Builder app; docs/conformance.md §2.
 */
import type { Address } from "../protocol/ids";
import { defined } from "../protocol/defined";
import { decoded } from "./calls";

/** A plain call for any wallet or multisig: `value` in wei, always "0" here. */
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
  readonly transactions: readonly (OwnerTransaction & {
    /** What `data` calls, for people. */
    readonly contractMethod: SafeMethod;
    /** Its arguments as text, by name. */
    readonly contractInputsValues: Readonly<Record<string, string>>;
  })[];
}

export interface SafeMethod {
  readonly name: string;
  readonly payable: false;
  readonly inputs: readonly { readonly name: string; readonly type: string; readonly internalType: string }[];
}

export interface SafeBatchMeta {
  /** The batch's title, shown to the signers. */
  readonly name: string;
  readonly description?: string;
  readonly safe?: Address;
}

export function safeBatchFile(
  chainId: bigint,
  transactions: readonly OwnerTransaction[],
  meta: SafeBatchMeta,
): SafeBatchFile {
  return {
    version: "1.0",
    chainId: chainId.toString(),
    createdAt: Date.now(),
    meta: { name: meta.name, description: meta.description ?? "", ...defined({ createdFromSafeAddress: meta.safe }) },
    transactions: transactions.map((transaction) => ({ ...transaction, ...methodOf(transaction.data) })),
  };
}

function methodOf(
  data: string,
): Pick<SafeBatchFile["transactions"][number], "contractMethod" | "contractInputsValues"> {
  const { functionName: name, args } = decoded(data);
  const inputs = args.map((arg) => ({ name: arg.name, type: arg.type, internalType: arg.type }));
  return {
    contractMethod: { name, payable: false, inputs },
    contractInputsValues: Object.fromEntries(args.map((arg) => [arg.name, arg.value])),
  };
}
