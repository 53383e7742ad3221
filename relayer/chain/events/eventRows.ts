/** From a log of the contract to a row of events. */
import { AbiCoder, toBeHex, zeroPadValue, type LogDescription, type ParamType } from "ethers";
import type { Insertable } from "kysely";
import { CONTRACT, textOf } from "../abi/contract";
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

type EventRow = Insertable<ChainEventsTable>;

/** Which argument names the account's owner from this event on. */
const OWNER_ARGUMENT: Readonly<Record<string, string>> = {
  AccountCreated: "admin",
  AccountConvertedToChainSecured: "newAdmin",
  AccountOwnershipTransferred: "newOwner",
};

/** Undefined for a log that is no event of the interface. */
export function eventRow(log: ChainLog): EventRow | undefined {
  const event = CONTRACT.parseLog(log);
  if (event === null) return undefined;
  const texts = textsOf(event, log.data);
  const args = Object.fromEntries(event.fragment.inputs.map((input, index) => [input.name, texts.get(input.name) ?? wireValue(input, event.args[index])]));
  const ownerArgument = OWNER_ARGUMENT[event.name];
  return {
    account_id: typeof args.id === "string" ? args.id : null,
    name: event.name,
    block_number: Number(log.blockNumber),
    block_hash: log.blockHash,
    transaction_hash: log.transactionHash,
    log_index: Number(log.logIndex),
    args: JSON.stringify(args),
    owner: ownerArgument === undefined ? null : String(args[ownerArgument]),
  };
}

/** Names and descriptions: anybody can write one that is no UTF-8, which must not stop the follower. */
function textsOf({ fragment }: LogDescription, data: string): ReadonlyMap<string, string> {
  const inputs = fragment.inputs.filter(({ indexed }) => !indexed);
  const types = inputs.map(({ type }) => (type === "string" ? "bytes" : type));
  const values = AbiCoder.defaultAbiCoder().decode(types, data);
  return new Map(inputs.flatMap(({ name, type }, index) => (type === "string" ? [[name, textOf(String(values[index]))]] : [])));
}

const HASHES = new Set(["id", "keyId", "action", "actor", "derivationPath"]);

function wireValue(input: ParamType, value: unknown): unknown {
  if (typeof value === "bigint") return HASHES.has(input.name) ? zeroPadValue(toBeHex(value), 32) : value.toString();
  if (input.arrayChildren !== null) return [...(value as unknown[])].map(String);
  return value;
}
