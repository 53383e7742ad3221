/**
 * The one call before a run: whether the key may run the action (with the PKP), the state of the key, and the decision
 * about another PKP that the run is likely to use. All are read in one `multicall`, so that they are answered at the
 * same block.
 */
import { AccountManager__factory } from "../typechain-types";
import { encodeBytesArray, MalformedAnswer, numberWord, WORD_BYTES, wordsOf } from "./abi";
import { DECISION_WORDS, decisionOf, encodeQuestion, type Decision } from "./decision";
import { bytesOfHex } from "./hex";
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

/** Where each result starts in the encoded array, and the offset and length words between them, which are constant. */
interface Layout {
  readonly total: number;
  readonly starts: readonly number[];
  readonly around: ReadonlyMap<number, string>;
}

function layoutOf(sizes: readonly number[]): Layout {
  const around = new Map([WORD_BYTES, sizes.length].map((value, index) => [index, numberWord(value)]));
  const head = around.size;
  let at = head + sizes.length;
  const starts = sizes.map((size, index) => {
    around.set(head + index, numberWord((at - head) * WORD_BYTES)).set(at, numberWord(size * WORD_BYTES));
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
  return MULTICALL + encodeBytesArray(questions.map(bytesOfHex)).toString("hex");
}

/** @param isAhead whether a PKP was asked about ahead. @throws MalformedAnswer. */
export function decodeAdmission(key: KeyId | AccountId, data: unknown, isAhead = false): Admission {
  const { total, starts, around } = isAhead ? LAYOUT_AHEAD : LAYOUT;
  const all = wordsOf(data, total);
  for (const [index, expected] of around) if (all[index] !== expected) throw new MalformedAnswer();
  const [decision = 0, state = 0, ahead = 0] = starts;
  const decisionAt = (start: number): Decision => decisionOf(all.slice(start, start + DECISION_WORDS));
  return {
    decision: decisionAt(decision),
    key: keyStateOf(key as KeyId, all.slice(state, state + KEY_WORDS)),
    ...(isAhead && { ahead: decisionAt(ahead) }),
  };
}
