/**
 * `explainExecution`, the one contract call of the hot path: three words out, eight words back.
 */
import { AccountManager__factory } from "../typechain-types";
import { addressWord, flagOf, MalformedAnswer, wordsOf, ZERO_WORD } from "./abi";
import type { AccountId, ActionHash, DerivationPath, Hash32, KeyId, PkpId } from "./ids";

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

export const DECISION_WORDS = 8;

/** Calldata of `explainExecution(key, action, pkp or zero)`. */
export function encodeQuestion(key: KeyId | AccountId, action: ActionHash, pkp: PkpId | undefined): string {
  return EXPLAIN + key.slice(2) + action.slice(2) + (pkp === undefined ? ZERO_WORD : addressWord(pkp));
}

/** @throws MalformedAnswer. */
export const decodeDecision = (data: unknown): Decision => decisionOf(wordsOf(data, DECISION_WORDS));

/** @throws MalformedAnswer. */
export function decisionOf(words: readonly string[]): Decision {
  const [allowed, reasonWord, actionByName, account, path, blockNumber, blockTimestamp, deniedOps] = words;
  const reason = DENIAL_REASONS[Number(`0x${reasonWord}`)];
  if (reason === undefined) throw new MalformedAnswer();
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
