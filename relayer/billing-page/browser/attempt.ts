/**
 * One press of "Pay", remembered until it has ended: after a reload, a crash of the tab or a time-out the same attempt goes on, so that a second press
 * makes no second payment. It holds no secret: the key it carries only names the attempt.
 */
export interface Attempt {
  readonly key: string;
  readonly amountCents: number;
  /** Known once the service has answered. */
  readonly paymentIntentId?: string;
}

const PLACE = "billing.attempt";

export function openAttempt(): Attempt | undefined {
  try {
    return JSON.parse(localStorage.getItem(PLACE) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}

/** The open attempt for this amount, or a new one. */
export function attemptFor(amountCents: number): Attempt {
  const open = openAttempt();
  if (open?.amountCents === amountCents) return open;
  const fresh = { key: crypto.randomUUID(), amountCents };
  remember(fresh);
  return fresh;
}

export function remember(attempt: Attempt): void {
  localStorage.setItem(PLACE, JSON.stringify(attempt));
}

export function forgetAttempt(): void {
  localStorage.removeItem(PLACE);
}
