/**
 * Encodes and decodes `getKey`, the contract call of every request, by hand: one word out, eight back. A test compares
 * it with the ABI.
 */
import { AccountManager__factory } from "../typechain-types";
import { flagOf, wordsOf } from "./abi";
import type { AccountId, KeyId } from "./ids";

/** The state of a key of any kind at the block of the answer. */
export interface KeyState {
  readonly keyId: KeyId;
  readonly accountId: AccountId;
  /** True for the account key; false for a usage key. */
  readonly isAccountKey: boolean;
  /** The key is set and not expired; for an account key: its account is managed. */
  readonly live: boolean;
  /** Of the account: true in API mode, false in ChainSecured mode. */
  readonly managed: boolean;
  /** Unix seconds; 0 = never. */
  readonly expiresAtSeconds: bigint;
  /** Spending cap over the key's life in US cents; 0 = none. */
  readonly capCents: bigint;
}

const GET_KEY = AccountManager__factory.createInterface().getFunction("getKey").selector;
export const KEY_WORDS = 8;

export const keyQuestion = (id: KeyId | AccountId): string => GET_KEY + id.slice(2);

/** Undefined for a key the contract never knew. @throws MalformedAnswer. */
export const keyAnswer = (keyId: KeyId, data: unknown): KeyState | undefined =>
  keyStateOf(keyId, wordsOf(data, KEY_WORDS));

export function keyStateOf(keyId: KeyId, words: readonly string[]): KeyState | undefined {
  const [account = "", isAccountKey, live, managed, , expiration, balance] = words;
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
