/** The price of a run, by the same rule for the relayer, which charges it, and the keyholder, which certifies it. */

/**
 * Code found invalid within this time is free, as mistakes are; longer parsing is charged, since it could be repeated
 * to keep others waiting.
 */
const FREE_TO_PARSE_MS = 250;

/** A started second is charged in full; every started run counts at least one. */
export const startedSeconds = (durationMs: number): number => Math.max(1, Math.ceil(durationMs / 1000));

/** Free: faults of the service, and code that never started. */
export const isFreeRun = (run: {
  readonly serviceFault: boolean;
  readonly errorCode: string | undefined;
  readonly durationMs: number;
}): boolean => run.serviceFault || (run.errorCode === "invalid_code" && run.durationMs <= FREE_TO_PARSE_MS);
