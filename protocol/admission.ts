/**
 * The one call before a run: whether the key may run the action (with the PKP), and the state of the key. Both are read
 * in one `multicall`, so that they are answered at the same block. Encoded and decoded by hand, like `decision.ts`.
 */
import { IAccountManager__factory } from "../typechain-types";
import { DECISION_WORDS, NotTheContract, decisionOf, encodeQuestion, wordsOf, type Decision } from "./decision";
import type { AccountId, ActionHash, KeyId, PkpId } from "./ids";
import { KEY_WORDS, keyQuestion, keyStateOf, type KeyState } from "./keyState";

export interface Admission {
  readonly decision: Decision;
  /** Undefined for a key the contract never knew. */
  readonly key: KeyState | undefined;
}

const MULTICALL = IAccountManager__factory.createInterface().getFunction("multicall").selector;
const WORD_BYTES = 32;

const word = (value: number): string => value.toString(16).padStart(2 * WORD_BYTES, "0");
const words = (...values: number[]): string => values.map(word).join("");

/** ABI encoding of one `bytes` element: its length, then its content padded to whole words. */
function bytesOf(calldata: string): string {
  const digits = calldata.slice(2);
  const whole = Math.ceil(digits.length / (2 * WORD_BYTES)) * 2 * WORD_BYTES;
  return word(digits.length / 2) + digits.padEnd(whole, "0");
}

const QUESTION_BYTES = (2 + 4) * WORD_BYTES;
/** Head of the list of calls: its offset, its length, the offsets of its two elements. */
const LIST_OF_QUESTIONS = words(WORD_BYTES, 2, 2 * WORD_BYTES, QUESTION_BYTES + WORD_BYTES);
const HEAD_WORDS = 5;
const DECISION_BYTES = DECISION_WORDS * WORD_BYTES;
/** Head of the list of answers, with the length of the first. */
const LIST_OF_ANSWERS = words(WORD_BYTES, 2, 2 * WORD_BYTES, 3 * WORD_BYTES + DECISION_BYTES, DECISION_BYTES);
const SECOND_LENGTH = word(KEY_WORDS * WORD_BYTES);

/** Calldata of `multicall([explainExecution(key, action, pkp or zero), getKey(key)])`. */
export function encodeAdmission(key: KeyId | AccountId, action: ActionHash, pkp: PkpId | undefined): string {
  return MULTICALL + LIST_OF_QUESTIONS + bytesOf(encodeQuestion(key, action, pkp)) + bytesOf(keyQuestion(key));
}

/** @throws NotTheContract. */
export function decodeAdmission(key: KeyId | AccountId, data: unknown): Admission {
  const all = wordsOf(data, HEAD_WORDS + DECISION_WORDS + 1 + KEY_WORDS);
  const [head, decision, length, state] = [
    all.slice(0, HEAD_WORDS),
    all.slice(HEAD_WORDS, HEAD_WORDS + DECISION_WORDS),
    all[HEAD_WORDS + DECISION_WORDS],
    all.slice(-KEY_WORDS),
  ];
  if (head.join("") !== LIST_OF_ANSWERS || length !== SECOND_LENGTH) throw new NotTheContract();
  return { decision: decisionOf(decision), key: keyStateOf(key as KeyId, state) };
}
