/** The price of a run, by the same rule for the relayer, which charges it, and the keyholder, which certifies it. */

/** A started second is charged in full; every started run counts at least one. */
export const startedSeconds = (durationMs: number): number => Math.max(1, Math.ceil(durationMs / 1000));
