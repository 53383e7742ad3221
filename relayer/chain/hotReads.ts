/**
 * The two questions of every request, `getKey` and `explainExecution`, written and read by hand: words in, words out. A general ABI coder takes longer for
 * them than the node does; a test holds the two against each other.
 */
import { getAddress } from "ethers";
import { KeywrightError } from "../../protocol/errors";
import { ZERO_ADDRESS, type AccountId, type ActionHash, type Address, type KeyId, type PkpId } from "../../protocol/ids";
import { CONTRACT } from "./abi";
import { DENIAL_REASONS, type DenialReason, type KeyState } from "./types";

const GET_KEY = selectorOf("getKey");
const EXPLAIN = selectorOf("explainExecution");
const WORD_DIGITS = 64;
const KEY_WORDS = 7;
const EXPLAIN_WORDS = 7;

export const keyQuestion = (id: KeyId): string => GET_KEY + id.slice(2);

/** Undefined for a key that was never known. */
export function keyAnswer(keyId: KeyId, data: unknown): KeyState | undefined {
  const [account = "", isAccountKey, live, managed, owner = "", expiration, balance] = wordsOf(data, KEY_WORDS);
  if (/^0+$/.test(account)) return undefined;
  return {
    keyId,
    accountId: `0x${account}` as AccountId,
    isAccountKey: flag(isAccountKey),
    live: flag(live),
    managed: flag(managed),
    owner: getAddress(`0x${owner.slice(-40)}`) as Address,
    expiresAtSeconds: BigInt(`0x${expiration}`),
    capCents: BigInt(`0x${balance}`),
  };
}

export function executionQuestion(key: KeyId, action: ActionHash, pkpId: PkpId | undefined): string {
  const pkp = (pkpId ?? ZERO_ADDRESS).slice(2).toLowerCase().padStart(WORD_DIGITS, "0");
  return EXPLAIN + key.slice(2) + action.slice(2) + pkp;
}

export function executionAnswer(data: unknown): { allowed: boolean; reason: DenialReason } {
  const [allowed, reason] = wordsOf(data, EXPLAIN_WORDS);
  return { allowed: flag(allowed), reason: DENIAL_REASONS[Number(`0x${reason}`)] ?? "none" };
}

function wordsOf(data: unknown, count: number): string[] {
  if (typeof data !== "string" || data.length !== 2 + count * WORD_DIGITS || !/^0x[0-9a-f]+$/i.test(data)) {
    throw new KeywrightError("chain_unavailable", "There is no account contract at the configured address of this chain.");
  }
  return Array.from({ length: count }, (_, index) => data.slice(2 + index * WORD_DIGITS, 2 + (index + 1) * WORD_DIGITS).toLowerCase());
}

const flag = (word: string | undefined): boolean => BigInt(`0x${word}`) !== 0n;

function selectorOf(name: string): string {
  const found = CONTRACT.getFunction(name);
  if (found === null) throw new Error(`the contract has no function ${name}`);
  return found.selector;
}
