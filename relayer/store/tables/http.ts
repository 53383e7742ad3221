/** Tables of the HTTP face: idempotent answers, known CIDs. */
export type HttpTables = Record<never, never>;
