/**
 * Requests of this tab whose outcome is unknown, or whose secret is not stored yet. Each keeps the idempotency key
 * under which it is repeated, also after a reload, so that nothing is done twice and no secret is lost with its answer.
 * Holds no credential and no secret; ends with the tab.
 */
import { useSyncExternalStore } from "react";
import { ClientError } from "../../client";

export interface Attempt {
  /** Equal for equal requests. */
  readonly name: string;
  readonly key: string;
  readonly madeAtMs: number;
  readonly secret?: SecretRequest;
}

export type SecretAttempt = Attempt & { readonly secret: SecretRequest };

/** What is sent again to see a secret once more. */
export interface SecretRequest {
  /** The account's id; empty for an account that is being created. */
  readonly account: string;
  readonly label: string;
  readonly body: object;
}

const STORAGE_KEY = "attempts";
/** The service remembers requests for a day; an older one would be done anew. */
const REPEATABLE_MS = 23 * 3_600_000;

let attempts: readonly Attempt[] = stored();
const listeners = new Set<() => void>();

function stored(): readonly Attempt[] {
  try {
    return JSON.parse(sessionStorage.getItem(STORAGE_KEY) ?? "[]") as Attempt[];
  } catch {
    return [];
  }
}

function keep(next: readonly Attempt[]): void {
  attempts = next;
  for (const listener of listeners) listener();
  try {
    sessionStorage.setItem(STORAGE_KEY, JSON.stringify(next));
  } catch {
    // Storage may be disabled; then attempts end with the page.
  }
}

const isRepeatable = ({ madeAtMs }: Attempt): boolean => Date.now() - madeAtMs < REPEATABLE_MS;

/** The idempotency key of this request: that of its open attempt, or a new one. */
export function attemptKey(name: string, secret?: SecretRequest): string {
  const open = attempts.find((one) => one.name === name && isRepeatable(one));
  if (open !== undefined) return open.key;
  const key = crypto.getRandomValues(new BigUint64Array(2)).join("-");
  const made = { name, key, madeAtMs: Date.now(), ...(secret === undefined ? {} : { secret }) };
  keep([...attempts.filter((one) => one.name !== name && isRepeatable(one)), made]);
  return key;
}

export const endAttempt = (name: string): void => keep(attempts.filter((one) => one.name !== name));

/** Ends a failed attempt whose outcome is known: not one that may be tried again, or whose first request still runs. */
export function endFailedAttempt(name: string, error: unknown): void {
  const isOpen = error instanceof ClientError && (error.retryable || error.code === "idempotency_in_progress");
  if (!isOpen) endAttempt(name);
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
