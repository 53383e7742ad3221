/** Converts a log of the contract to a row of events. */
import { toBeHex, zeroPadValue, type ParamType } from "ethers";
import type { Insertable } from "kysely";
import { decodeLog } from "../abi/logs";
import type { ChainEventsTable } from "../../store/tables/chain";

export interface ChainLog {
  readonly address: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly transactionHash: string;
  readonly logIndex: string;
  readonly topics: readonly string[];
  readonly data: string;
}

/** As it is appended to the list. */
export type EventRow = Insertable<ChainEventsTable>;

/** The argument that names the account's new owner, or the PKP that the account registers. */
const ADDRESS_ARGUMENT: Readonly<Record<string, string>> = {
  AccountCreated: "admin",
  AccountConvertedToChainSecured: "newAdmin",
  AccountOwnershipTransferred: "newOwner",
  WalletDerivationRegistered: "pkpId",
};

/** Undefined for a log that is not an event of the interface. */
export function eventRow(log: ChainLog): EventRow | undefined {
  const event = decodeLog(log);
  if (event === undefined) return undefined;
  const args = Object.fromEntries(event.inputs.map((input) => [input.name, wireValue(input, event.args[input.name])]));
  const addressArgument = ADDRESS_ARGUMENT[event.name];
  return {
    account_id: typeof args.id === "string" ? args.id : null,
    name: event.name,
    block_number: Number(log.blockNumber),
    block_hash: log.blockHash,
    transaction_hash: log.transactionHash,
    log_index: Number(log.logIndex),
    args: JSON.stringify(args),
    owner: addressArgument === undefined ? null : String(args[addressArgument]),
  };
}

const HASHES = new Set(["id", "keyId", "action", "actor", "derivationPath"]);

function wireValue(input: ParamType, value: unknown): unknown {
  if (typeof value === "bigint") return HASHES.has(input.name) ? zeroPadValue(toBeHex(value), 32) : value.toString();
  if (input.arrayChildren !== null) return [...(value as unknown[])].map(String);
  return value;
}
