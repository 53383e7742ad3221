/**
 * The result of a write, in the API's terms, from its receipt. Ids are taken from the receipt, never from a simulation.
 */
import { toBeHex } from "ethers";
import { hash32FromUint, type Address, type DerivationPath, type Hash32 } from "../../../protocol/ids";
import { decodeLog, type DecodedLog } from "./logs";
import type { WriteResult } from "../types";

export interface ReceiptLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

export interface Receipt {
  readonly from: string;
  /** Null for a contract creation, which this service never sends. */
  readonly to: string | null;
  readonly transactionHash: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly status: string;
  readonly gasUsed: string;
  readonly logs: readonly ReceiptLog[];
}

/**
 * An endpoint's answer, if it is the receipt of this transaction in a block up to `highest`. A block number that is
 * none would be stored as the oldest that reads may be answered from.
 */
export function receiptOf(hash: string, highest: number, answer: unknown): Receipt | undefined {
  if (typeof answer !== "object" || answer === null) return undefined;
  const receipt = answer as Receipt;
  const isOurs = typeof receipt.transactionHash === "string" && receipt.transactionHash.toLowerCase() === hash;
  const isMined = typeof receipt.blockHash === "string" && typeof receipt.blockNumber === "string";
  return isOurs && isMined && Number(receipt.blockNumber) <= highest ? receipt : undefined;
}

/** The contract's events in a receipt, in order. */
export function eventsOf(receipt: Receipt, contract: Address): readonly DecodedLog[] {
  return receipt.logs
    .filter((log) => log.address.toLowerCase() === contract.toLowerCase())
    .map(decodeLog)
    .filter((event) => event !== undefined);
}

export function resultOf(events: readonly DecodedLog[]): WriteResult {
  return events.reduce<WriteResult>((result, event) => ({ ...factsOf(event), ...result }), {});
}

function factsOf({ name, args }: DecodedLog): WriteResult {
  switch (name) {
    case "GroupAdded":
      return { group_id: String(args.groupId) };
    case "WalletDerivationRegistered":
      return {
        wallet_address: args.pkpId as Address,
        derivation_path: toBeHex(args.derivationPath as bigint, 32) as DerivationPath,
      };
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

/** Attributes events to the submissions of a batch: every event of an account names its id. */
export function eventsByAccount(events: readonly DecodedLog[]): (accountId: string | null) => readonly DecodedLog[] {
  const byId = Map.groupBy(events, ({ args }) => (typeof args.id === "bigint" ? hash32FromUint(args.id) : undefined));
  return (accountId) => (accountId === null ? [] : (byId.get(accountId as Hash32) ?? []));
}

/** Failed calls of a batch, by index, with their revert data. */
export function failedCalls(events: readonly DecodedLog[]): ReadonlyMap<number, string> {
  return new Map(
    events.filter(({ name }) => name === "CallFailed").map(({ args }) => [Number(args.index), String(args.reason)]),
  );
}

export const sameResult = (a: WriteResult | undefined, b: WriteResult | undefined): boolean =>
  canonical(a) === canonical(b);

function canonical(result: WriteResult | undefined): string {
  const entries: (readonly [string, Address | Hash32 | string])[] = Object.entries(result ?? {});
  return JSON.stringify(entries.sort(([a], [b]) => a.localeCompare(b)));
}
