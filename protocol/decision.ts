/**
 * The one question of the hot path, `explainExecution`, written and read by hand: three words out, eight words back. A general ABI coder takes longer for it
 * than everything else a run needs before it begins; tests hold the two against each other. Relayer and executor each ask it for themselves.
 */
import { IAccountManager__factory } from "../typechain-types";
import type { AccountId, ActionHash, Address, DerivationPath, Hash32, KeyId, PkpId } from "./ids";

/** The answer is not one the contract can have given. */
export class NotTheContract extends Error {
  override readonly name = "NotTheContract";
  constructor() {
    super("the answer is not that of an AccountManager");
  }
}

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
  "AccountFrozen",
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
  /** What no action may ask for with the PKP: bits of `PKP_OPS`. */
  readonly deniedOps: bigint;
}

const CONTRACT = IAccountManager__factory.createInterface();
const EXPLAIN = CONTRACT.getFunction("explainExecution").selector;
export const TRUSTED_FORWARDER_CALL = CONTRACT.getFunction("trustedForwarder").selector;
export const KEY_NAMESPACE_CALL = CONTRACT.getFunction("keyNamespace").selector;

const WORD_DIGITS = 64;
const WORDS = 8;
const ZERO_WORD = "0".repeat(WORD_DIGITS);

/** An address as a word of calldata. */
export const addressWord = (address: Address): string => address.slice(2).toLowerCase().padStart(WORD_DIGITS, "0");

/** Exactly `count` words of return data, in lower case. @throws NotTheContract. */
export function wordsOf(data: unknown, count: number): string[] {
  if (typeof data !== "string" || data.length !== 2 + count * WORD_DIGITS || !/^0x[0-9a-fA-F]+$/.test(data)) throw new NotTheContract();
  return Array.from({ length: count }, (_, index) => data.slice(2 + index * WORD_DIGITS, 2 + (index + 1) * WORD_DIGITS).toLowerCase());
}

/** A word that is 0 or 1. @throws NotTheContract. */
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
export function decodeDecision(data: unknown): Decision {
  const [allowed, reasonWord, actionByName, account, path, blockNumber, blockTimestamp, deniedOps] = wordsOf(data, WORDS);
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
