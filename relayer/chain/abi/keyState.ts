/** `getKey`, the question of every request, written and read by hand: one word out, eight back. A test holds it against the ABI. */
import { flagOf, wordsOf } from "../../../protocol/decision";
import type { AccountId, KeyId } from "../../../protocol/ids";
import { CONTRACT } from "./contract";
import type { KeyState } from "../types";

const GET_KEY = selectorOf("getKey");
const WORDS = 8;

export const keyQuestion = (id: KeyId): string => GET_KEY + id.slice(2);

/** Undefined for a key that was never known. @throws NotTheContract. */
export function keyAnswer(keyId: KeyId, data: unknown): KeyState | undefined {
  const [account = "", isAccountKey, live, managed, , expiration, balance] = wordsOf(data, WORDS);
  if (/^0+$/.test(account)) return undefined;
  return {
    keyId,
    accountId: `0x${account}` as AccountId,
    isAccountKey: flagOf(isAccountKey),
    live: flagOf(live),
    managed: flagOf(managed),
    expiresAtSeconds: BigInt(`0x${expiration}`),
    capCents: BigInt(`0x${balance}`),
  };
}

function selectorOf(name: string): string {
  const found = CONTRACT.getFunction(name);
  if (found === null) throw new Error(`the contract has no function ${name}`);
  return found.selector;
}
