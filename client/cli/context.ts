/** The context passed to every command: I/O, options, requests and output. */
import { WrongUse } from "../errors";
import type { Connection } from "../operations";
import type { Io } from "./io";

export interface GlobalOptions {
  readonly url?: string;
  readonly profile?: string;
  readonly json?: boolean;
  readonly insecure?: boolean;
  readonly idempotencyKey?: string;
}

export function refuseIdempotencyKey({ idempotencyKey }: GlobalOptions): void {
  if (idempotencyKey !== undefined)
    throw new WrongUse("--idempotency-key is for one request, and this command makes several.");
}

export type Out = (value: unknown) => void;

export interface Context {
  readonly io: Io;
  readonly options: () => GlobalOptions;
  /** Prints an answer: as JSON when asked for, readable otherwise. */
  readonly print: Out;
  /** Runs `use` with the login's connection and closes it afterwards. */
  readonly connected: <T>(use: (connection: Connection) => Promise<T>) => Promise<T>;
  /** Shows what is waited for, to people. */
  readonly waiting: <T>(what: string, work: Promise<T>) => Promise<T>;
  /** Both, for one request; with `isFirst` for one that makes the login named. */
  readonly asking: <T>(what: string, use: (connection: Connection) => Promise<T>, isFirst?: boolean) => Promise<T>;
}
