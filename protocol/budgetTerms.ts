/** Windows, names and amounts of budgets, also for the SDK and the dashboard. */

/** In the order of the contract's enum. */
export const WINDOWS = ["hour", "day"] as const;
export type BudgetWindow = (typeof WINDOWS)[number];
export const WINDOW_SECONDS: Readonly<Record<BudgetWindow, bigint>> = { hour: 3_600n, day: 86_400n };

/** When the window with this moment of the chain's time began, in Unix seconds. */
export const windowStart = (window: BudgetWindow, timestamp: bigint): bigint =>
  timestamp - (timestamp % WINDOW_SECONDS[window]);

/** Amounts and limits are below 2^128. */
export const MAX_AMOUNT = 2n ** 128n - 1n;
/** A name fits a word of the contract. */
export const BUDGET_NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,30}$/;
