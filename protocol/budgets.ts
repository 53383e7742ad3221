/**
 * Budgets: the contract that counts them, its windows, names and amounts. Its address follows from its code and the
 * account manager's address (CREATE2 by the deterministic deployer that every network has), so nobody can name another
 * contract in its place.
 */
import { AbiCoder, concat, encodeBytes32String, getCreate2Address, keccak256, ZeroHash } from "ethers";
import { Budgets__factory } from "../typechain-types";
import { WINDOWS, type BudgetWindow } from "./budgetTerms";
import { MalformedAnswer } from "./abi";
import type { AccountId, ActionHash, Address, Cid, Hash32 } from "./ids";

/** Takes a salt and creation code as calldata: github.com/Arachnid/deterministic-deployment-proxy. */
export const DETERMINISTIC_DEPLOYER = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

export const BUDGETS = Budgets__factory.createInterface();

/** The creation code, with the account manager whose API payers may lease. */
export const budgetsCode = (accountManager: Address): string =>
  concat([Budgets__factory.bytecode, AbiCoder.defaultAbiCoder().encode(["address"], [accountManager])]);

const addresses = new Map<Address, Address>();
export function budgetsAddressOf(accountManager: Address): Address {
  const known =
    addresses.get(accountManager) ??
    (getCreate2Address(DETERMINISTIC_DEPLOYER, ZeroHash, keccak256(budgetsCode(accountManager))) as Address);
  addresses.set(accountManager, known);
  return known;
}

/** What a counter counts, in any window. */
export interface Budget {
  readonly account: AccountId;
  readonly action: ActionHash;
  readonly name: string;
  readonly window: BudgetWindow;
}

/** A budget that was spent of. */
export interface KnownBudget extends Budget {
  readonly cid: Cid;
  /** The limit that was stated last. */
  readonly lastLimit: bigint;
}

const argumentsOf = ({ account, action, name, window }: Budget): readonly [string, string, string, number] => [
  account,
  action,
  encodeBytes32String(name),
  WINDOWS.indexOf(window),
];

/** The counter's name in events. */
export const counterOf = (budget: Budget, index: bigint): Hash32 =>
  keccak256(
    AbiCoder.defaultAbiCoder().encode(
      ["uint256", "bytes32", "bytes32", "uint8", "uint256"],
      [...argumentsOf(budget), index],
    ),
  ) as Hash32;

/** A lease as its keyholder has it sent. */
export interface LeaseTerms {
  readonly budget: Budget;
  readonly amount: bigint;
  readonly limit: bigint;
  readonly id: Hash32;
}

export const encodeLease = ({ budget, amount, limit, id }: LeaseTerms): string =>
  BUDGETS.encodeFunctionData("lease", [...argumentsOf(budget), amount, limit, id]);

const LEASE_SELECTOR = Buffer.from(BUDGETS.getFunction("lease").selector.slice(2), "hex");

/** The contract that a payer's call goes to. Nothing else of a payer has this selector. */
export function targetOf(calldata: string | Buffer, accountManager: Address): Address {
  const start = typeof calldata === "string" ? Buffer.from(calldata.slice(2, 10), "hex") : calldata.subarray(0, 4);
  return start.equals(LEASE_SELECTOR) ? budgetsAddressOf(accountManager) : accountManager;
}
export const LEASED_TOPIC = BUDGETS.getEvent("Leased").topicHash as Hash32;

export const encodeUsedNow = (budget: Budget): string =>
  BUDGETS.encodeFunctionData("usedNow", [...argumentsOf(budget)]);

/** A counter now, and the block that says so. */
export interface UsedNow {
  readonly used: bigint;
  readonly timestamp: bigint;
  readonly blockNumber: bigint;
}

/** @throws MalformedAnswer. */
export function decodeUsedNow(data: unknown): UsedNow {
  if (typeof data !== "string" || data.length !== 2 + 3 * 64) throw new MalformedAnswer();
  const [used, timestamp, blockNumber] = BUDGETS.decodeFunctionResult("usedNow", data) as unknown as [
    bigint,
    bigint,
    bigint,
  ];
  return { used, timestamp, blockNumber };
}
