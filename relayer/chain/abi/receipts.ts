/** What a receipt says the write made, in the wire's words. Ids come from here and never from a simulation. */
import { toBeHex, type LogDescription } from "ethers";
import { hash32FromUint, type Address, type DerivationPath, type Hash32 } from "../../../protocol/ids";
import { CONTRACT } from "./contract";
import type { WriteResult } from "../types";

export interface ReceiptLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

export interface Receipt {
  readonly from: string;
  readonly transactionHash: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly status: string;
  readonly gasUsed: string;
  readonly logs: readonly ReceiptLog[];
}

export function resultOf(receipt: Receipt, contract: Address): WriteResult {
  const events = receipt.logs.filter((log) => log.address.toLowerCase() === contract.toLowerCase()).map((log) => CONTRACT.parseLog(log));
  return events.reduce((result, event) => (event === null ? result : { ...factsOf(event), ...result }), {} as WriteResult);
}

function factsOf({ name, args }: LogDescription): WriteResult {
  switch (name) {
    case "GroupAdded":
      return { group_id: String(args.groupId) };
    case "WalletDerivationRegistered":
      return { wallet_address: args.pkpId as Address, derivation_path: toBeHex(args.derivationPath as bigint, 32) as DerivationPath };
    case "UsageApiKeySet":
      return { api_key_hash: hash32FromUint(args.keyId as bigint) };
    case "AccountCreated":
      return { wallet_address: args.admin as Address, api_key_hash: hash32FromUint(args.id as bigint) };
    case "AccountConvertedToChainSecured":
      return { wallet_address: args.newAdmin as Address, api_key_hash: hash32FromUint(args.id as bigint) };
    default:
      return {};
  }
}

export const sameResult = (a: WriteResult | undefined, b: WriteResult | undefined): boolean => canonical(a) === canonical(b);

function canonical(result: WriteResult | undefined): string {
  const entries: (readonly [string, Address | Hash32 | string])[] = Object.entries(result ?? {});
  return JSON.stringify(entries.sort(([a], [b]) => a.localeCompare(b)));
}
