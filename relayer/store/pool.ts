import type { PostgresPool } from "kysely";

export interface PoolFigures {
  readonly busy: number;
  readonly idle: number;
  /** Statements that wait for a connection. */
  readonly waiting: number;
}

/** A pool that reports its load. */
export interface MeasuredPool extends PostgresPool {
  figures(): PoolFigures;
}
