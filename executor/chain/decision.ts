/**
 * The one question of the hot path, `explainExecution`, written and read by hand: three words out, seven words back. A general ABI coder takes longer for it
 * than everything else the keyholder does before a run; a test holds the two against each other.
 */
import { IAccountManager__factory } from "../../typechain-types";
import type { AccountId, ActionHash, DerivationPath, Hash32, KeyId, PkpId } from "../../protocol/ids";
import { RpcFailure } from "./rpc";

/** Why the contract denies a run, in the order of its enum. */
export const DENIAL_REASONS = [
  "None",
  "UnknownKey",
  "KeyExpired",
  "AccountChainSecured",
  "NoExecuteScope",
  "ActionNotPermitted",
  "UnknownPkp",
  "PkpNotPermitted",
] as const;
export type DenialReason = (typeof DENIAL_REASONS)[number];

/** The contract's answer to "may this key run this action (with this PKP)?". */
export interface Decision {
  readonly allowed: boolean;
  readonly reason: DenialReason;
  /** Some group that allows it lists the action itself, not "any action". */
  readonly actionByName: boolean;
  readonly accountId: AccountId;
  /** Undefined when the PKP is none of the account's, or none was asked for. */
  readonly derivationPath: DerivationPath | undefined;
  readonly blockNumber: bigint;
  readonly blockTimestamp: bigint;
}

const CONTRACT = IAccountManager__factory.createInterface();
const EXPLAIN = CONTRACT.getFunction("explainExecution").selector;
export const KEY_NAMESPACE_CALL = CONTRACT.getFunction("keyNamespace").selector;

const WORD_DIGITS = 64;
const WORDS = 7;
const ANSWER = new RegExp(`^0x[0-9a-fA-F]{${WORDS * WORD_DIGITS}}$`);
const NO_PATH = "0".repeat(WORD_DIGITS);
const NO_PKP = NO_PATH;

/** Calldata of `explainExecution(key, action, pkp or zero)`. */
export function encodeQuestion(key: KeyId | AccountId, action: ActionHash, pkp: PkpId | undefined): string {
  const pkpWord = pkp === undefined ? NO_PKP : pkp.slice(2).toLowerCase().padStart(WORD_DIGITS, "0");
  return EXPLAIN + key.slice(2) + action.slice(2) + pkpWord;
}

/** @throws RpcFailure when the answer is not one the contract can have given. */
export function decodeDecision(data: string): Decision {
  if (!ANSWER.test(data)) throw new RpcFailure("the answer is not that of an AccountManager");
  const word = (index: number): string => data.slice(2 + index * WORD_DIGITS, 2 + (index + 1) * WORD_DIGITS).toLowerCase();
  const reason = DENIAL_REASONS[Number(`0x${word(1)}`)];
  if (reason === undefined) throw new RpcFailure("the contract gave a reason this executor does not know");
  return {
    allowed: flag(word(0)),
    reason,
    actionByName: flag(word(2)),
    accountId: `0x${word(3)}` as Hash32 as AccountId,
    derivationPath: word(4) === NO_PATH ? undefined : (`0x${word(4)}` as Hash32 as DerivationPath),
    blockNumber: BigInt(`0x${word(5)}`),
    blockTimestamp: BigInt(`0x${word(6)}`),
  };
}

function flag(word: string): boolean {
  const value = BigInt(`0x${word}`);
  if (value > 1n) throw new RpcFailure("the answer is not that of an AccountManager");
  return value === 1n;
}
