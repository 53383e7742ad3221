/**
 * The one call before a run: whether the key may run the action (with the PKP), the state of the key, and the decision
 * about another PKP that the run is likely to use. All are read in one `multicall`, so that they are answered at the
 * same block. Encoded and decoded by hand, like `decision.ts`.
 */
import { AccountManager__factory } from "../typechain-types";
import { DECISION_WORDS, NotTheContract, decisionOf, encodeQuestion, wordsOf, type Decision } from "./decision";
import type { AccountId, ActionHash, KeyId, PkpId } from "./ids";
import { KEY_WORDS, keyQuestion, keyStateOf, type KeyState } from "./keyState";

export interface Admission {
  readonly decision: Decision;
  /** Undefined for a key the contract never knew. */
  readonly key: KeyState | undefined;
  /** The decision about the PKP that was asked about ahead. */
  readonly ahead?: Decision;
}

const MULTICALL = AccountManager__factory.createInterface().getFunction("multicall").selector;
const WORD_BYTES = 32;

const word = (value: number): string => value.toString(16).padStart(2 * WORD_BYTES, "0");
const words = (...values: number[]): string => values.map(word).join("");

/** ABI encoding of one `bytes` element: its length, then its content padded to whole words. */
function bytesOf(calldata: string): string {
  const digits = calldata.slice(2);
  const whole = Math.ceil(digits.length / (2 * WORD_BYTES)) * 2 * WORD_BYTES;
  return word(digits.length / 2) + digits.padEnd(whole, "0");
}

/** ABI encoding of a list of `bytes`: where it starts, its length, where each element starts, the elements. */
function listOf(elements: readonly string[]): string {
  let at = elements.length * WORD_BYTES;
  const offsets = elements.map((element) => {
    const offset = at;
    at += element.length / 2;
    return offset;
  });
  return words(WORD_BYTES, elements.length, ...offsets) + elements.join("");
}

/** Where each result starts in the encoded array, and the offset and length words between them, which are constant. */
interface Layout {
  readonly total: number;
  readonly starts: readonly number[];
  readonly around: ReadonlyMap<number, string>;
}

function layoutOf(sizes: readonly number[]): Layout {
  const around = new Map([WORD_BYTES, sizes.length].map((value, index) => [index, word(value)]));
  const head = around.size;
  let at = head + sizes.length;
  const starts = sizes.map((size, index) => {
    around.set(head + index, word((at - head) * WORD_BYTES)).set(at, word(size * WORD_BYTES));
    const start = at + 1;
    at = start + size;
    return start;
  });
  return { total: at, starts, around };
}
const LAYOUT = layoutOf([DECISION_WORDS, KEY_WORDS]);
const LAYOUT_AHEAD = layoutOf([DECISION_WORDS, KEY_WORDS, DECISION_WORDS]);

/**
 * Calldata of `multicall([explainExecution(key, action, pkp or zero), getKey(key)])`, with
 * `explainExecution(key, action, ahead)` as a third call if a PKP is asked about ahead.
 */
export function encodeAdmission(
  key: KeyId | AccountId,
  action: ActionHash,
  pkp: PkpId | undefined,
  ahead?: PkpId,
): string {
  const questions = [encodeQuestion(key, action, pkp), keyQuestion(key)];
  if (ahead !== undefined) questions.push(encodeQuestion(key, action, ahead));
  return MULTICALL + listOf(questions.map(bytesOf));
}

/** @param isAhead whether a PKP was asked about ahead. @throws NotTheContract. */
export function decodeAdmission(key: KeyId | AccountId, data: unknown, isAhead = false): Admission {
  const { total, starts, around } = isAhead ? LAYOUT_AHEAD : LAYOUT;
  const all = wordsOf(data, total);
  for (const [index, expected] of around) if (all[index] !== expected) throw new NotTheContract();
  const [decision = 0, state = 0, ahead = 0] = starts;
  const decisionAt = (start: number): Decision => decisionOf(all.slice(start, start + DECISION_WORDS));
  return {
    decision: decisionAt(decision),
    key: keyStateOf(key as KeyId, all.slice(state, state + KEY_WORDS)),
    ...(isAhead && { ahead: decisionAt(ahead) }),
  };
}
