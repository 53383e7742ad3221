/**
 * Encodes and decodes `explainExecution`, the one contract call of the hot path, by hand: three words out, eight words
 * back. A general ABI coder takes longer than all other preparation of a run; tests compare the two.
 */
import { AccountManager__factory } from "../typechain-types";
import type { AccountId, ActionHash, Address, DerivationPath, Hash32, KeyId, PkpId } from "./ids";

/** The contract cannot have given this answer. */
export class NotTheContract extends Error {
  override readonly name = "NotTheContract";
  constructor() {
    super("the answer is not that of an AccountManager");
  }
}

/** Reasons for a denial, in the order of the contract's enum. */
export const DENIAL_REASONS = [
  "None",
  "UnknownKey",
  "KeyExpired",
  "AccountChainSecured",
  "NoExecuteScope",
  "ActionNotPermitted",
  "UnknownPkp",
  "PkpNotPermitted",
  "AccountFrozen",
] as const;
export type DenialReason = (typeof DENIAL_REASONS)[number];

/** The contract's answer to whether this key may run this action (with this PKP). */
export interface Decision {
  readonly allowed: boolean;
  readonly reason: DenialReason;
  /** A group that allows it lists the action by name, not "any action". */
  readonly actionByName: boolean;
  readonly accountId: AccountId;
  /** Undefined when the account has no such PKP or none was asked for. */
  readonly derivationPath: DerivationPath | undefined;
  readonly blockNumber: bigint;
  readonly blockTimestamp: bigint;
  /** Ops that are denied with the PKP: see `PKP_OP_NAMES`. */
  readonly deniedOps: bigint;
}

const CONTRACT = AccountManager__factory.createInterface();
const EXPLAIN = CONTRACT.getFunction("explainExecution").selector;
export const TRUSTED_FORWARDER_CALL = CONTRACT.getFunction("trustedForwarder").selector;
export const KEY_NAMESPACE_CALL = CONTRACT.getFunction("keyNamespace").selector;
export const ROOT_COMMITMENT_CALL = CONTRACT.getFunction("rootCommitment").selector;

const WORD_DIGITS = 64;
export const DECISION_WORDS = 8;
const ZERO_WORD = "0".repeat(WORD_DIGITS);

/** An address as a word of calldata. */
export const addressWord = (address: Address): string => address.slice(2).toLowerCase().padStart(WORD_DIGITS, "0");

/** Exactly `count` words of return data, in lower case. @throws NotTheContract. */
export function wordsOf(data: unknown, count: number): string[] {
  if (typeof data !== "string" || data.length !== 2 + count * WORD_DIGITS || !/^0x[0-9a-fA-F]+$/.test(data))
    throw new NotTheContract();
  return Array.from({ length: count }, (_, index) =>
    data.slice(2 + index * WORD_DIGITS, 2 + (index + 1) * WORD_DIGITS).toLowerCase(),
  );
}

/** Decodes a word that is 0 or 1. @throws NotTheContract. */
export function flagOf(word: string | undefined): boolean {
  const value = BigInt(`0x${word}`);
  if (value > 1n) throw new NotTheContract();
  return value === 1n;
}

/** Calldata of `explainExecution(key, action, pkp or zero)`. */
export function encodeQuestion(key: KeyId | AccountId, action: ActionHash, pkp: PkpId | undefined): string {
  return EXPLAIN + key.slice(2) + action.slice(2) + (pkp === undefined ? ZERO_WORD : addressWord(pkp));
}

/** @throws NotTheContract. */
export const decodeDecision = (data: unknown): Decision => decisionOf(wordsOf(data, DECISION_WORDS));

/** @throws NotTheContract. */
export function decisionOf(words: readonly string[]): Decision {
  const [allowed, reasonWord, actionByName, account, path, blockNumber, blockTimestamp, deniedOps] = words;
  const reason = DENIAL_REASONS[Number(`0x${reasonWord}`)];
  if (reason === undefined) throw new NotTheContract();
  return {
    allowed: flagOf(allowed),
    reason,
    actionByName: flagOf(actionByName),
    accountId: `0x${account}` as Hash32 as AccountId,
    derivationPath: path === ZERO_WORD ? undefined : (`0x${path}` as Hash32 as DerivationPath),
    blockNumber: BigInt(`0x${blockNumber}`),
    blockTimestamp: BigInt(`0x${blockTimestamp}`),
    deniedOps: BigInt(`0x${deniedOps}`),
  };
}
