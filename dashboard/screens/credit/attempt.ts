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

const placeOf = (account: string): string => `billing.attempt.${account}`;

export function openAttempt(account: string): Attempt | undefined {
  try {
    return (JSON.parse(localStorage.getItem(placeOf(account)) ?? "null") as Attempt | null) ?? undefined;
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
  localStorage.setItem(placeOf(attempt.account), JSON.stringify(attempt));
  return attempt;
}

export function forgetAttempt({ account }: Attempt): void {
  localStorage.removeItem(placeOf(account));
}
