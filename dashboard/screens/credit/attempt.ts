/**
 * One attempt to add funds, stored until it ends: after a reload, a crash of the tab or a time-out the same attempt
 * resumes, so that a second press makes no second payment. It holds no secret: its key is only an idempotency key. It
 * belongs to one account.
 */
export interface Attempt {
  readonly account: string;
  readonly key: string;
  readonly amountCents: number;
  /** Known once the service has answered. */
  readonly paymentIntentId?: string;
}

const STORAGE_KEY = "billing.attempt";

export function openAttempt(account: string): Attempt | undefined {
  try {
    const kept = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "null") as Attempt | null;
    return kept?.account === account ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** The open attempt for this amount, or a new one. */
export function attemptFor(account: string, amountCents: number): Attempt {
  const open = openAttempt(account);
  if (open?.amountCents === amountCents) return open;
  const key = crypto.getRandomValues(new BigUint64Array(2)).join("-");
  return remember({ account, key, amountCents });
}

export function remember(attempt: Attempt): Attempt {
  localStorage.setItem(STORAGE_KEY, JSON.stringify(attempt));
  return attempt;
}

export function forgetAttempt(): void {
  localStorage.removeItem(STORAGE_KEY);
}
