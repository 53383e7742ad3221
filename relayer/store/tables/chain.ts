/** Tables of relayer/chain: submissions, lanes, followed events. */
export type ChainTables = Record<never, never>;
