import type { PostgresPool } from "kysely";

export interface PoolFigures {
  readonly busy: number;
  readonly idle: number;
  /** Statements that wait for a connection. */
  readonly waiting: number;
}

/** A pool that can say how busy it is. */
export interface MeasuredPool extends PostgresPool {
  figures(): PoolFigures;
}
