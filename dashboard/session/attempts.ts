/**
 * Requests of this tab whose outcome is unknown, or whose secret is not stored yet. Each keeps the idempotency key
 * under which it is repeated, also after a reload, so that nothing is done twice and no secret is lost with its answer.
 * Holds no credential and no secret; ends with the tab.
 */
import { useSyncExternalStore } from "react";
import { ClientError } from "../../client";
import { store, storedList } from "./stored";

export interface Attempt {
  /** Equal for equal requests. */
  readonly name: string;
  readonly key: string;
  readonly madeAtMs: number;
  readonly secret?: SecretRequest;
}

export type SecretAttempt = Attempt & { readonly secret: SecretRequest };

/** What a secret belongs to. */
export type SecretKind = "account" | "usage key" | "trigger";

/** What is sent again to see a secret once more. */
export interface SecretRequest {
  readonly kind: SecretKind;
  /** The account's id; empty for an account that is being created. */
  readonly account: string;
  readonly label: string;
  readonly body: object;
}

const STORAGE_KEY = "attempts";
/** The service remembers requests for a day; an older one would be done anew. */
const REPEATABLE_MS = 23 * 3_600_000;

let attempts: readonly Attempt[] = storedList(STORAGE_KEY);
const listeners = new Set<() => void>();

function keep(next: readonly Attempt[]): void {
  attempts = next;
  for (const listener of listeners) listener();
  store("sessionStorage", STORAGE_KEY, JSON.stringify(next));
}

const isRepeatable = ({ madeAtMs }: Attempt): boolean => Date.now() - madeAtMs < REPEATABLE_MS;

/** The idempotency key of this request: that of its open attempt, or a new one. */
function attemptKey(name: string, secret?: SecretRequest): string {
  const open = attempts.find((one) => one.name === name && isRepeatable(one));
  if (open !== undefined) return open.key;
  const key = crypto.getRandomValues(new BigUint64Array(2)).join("-");
  const made = { name, key, madeAtMs: Date.now(), ...(secret === undefined ? {} : { secret }) };
  keep([...attempts.filter((one) => one.name !== name && isRepeatable(one)), made]);
  return key;
}

export const endAttempt = (name: string): void => keep(attempts.filter((one) => one.name !== name));

/**
 * Sends a request under its attempt's idempotency key. The attempt ends once the outcome is known: not while it may be
 * tried again or its first request still runs, and with a secret only when whoever shows that ends it.
 */
export async function attempted<R>(
  name: string,
  send: (options: { readonly idempotencyKey: string }) => Promise<R>,
  secret?: SecretRequest,
): Promise<R> {
  try {
    const answer = await send({ idempotencyKey: attemptKey(name, secret) });
    if (secret === undefined) endAttempt(name);
    return answer;
  } catch (error) {
    const isOpen = error instanceof ClientError && (error.retryable || error.code === "idempotency_in_progress");
    if (!isOpen) endAttempt(name);
    throw error;
  }
}

/** Keys that were requested for the account and may exist without their secret having been stored. */
export const useUnstoredSecrets = (account: string): readonly SecretAttempt[] =>
  useSyncExternalStore(subscribe, () => attempts).filter(
    (one): one is SecretAttempt => one.secret?.account === account && isRepeatable(one),
  );

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
