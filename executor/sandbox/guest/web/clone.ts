import clone from "@ungap/structured-clone";

/** Copies data: maps, sets, dates, errors, typed arrays, cycles. Functions are refused. */
export const structuredClone = (value: unknown): unknown => clone(value);
