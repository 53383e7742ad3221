/** What every command is given: the surroundings, and how to ask and answer. */
import type { Connection } from "./connection";
import type { Io } from "./io";

export interface GlobalOptions {
  readonly url?: string;
  readonly profile?: string;
  readonly json?: boolean;
}

export type Out = (value: unknown) => void;

/** What every command is given: the surroundings, and how to ask and answer. */
export interface Context {
  readonly io: Io;
  readonly options: () => GlobalOptions;
  /** Prints an answer: as JSON when asked for, readable otherwise. */
  readonly print: Out;
  /** Asks with the login, and closes what was opened. */
  readonly asking: <T>(what: string, use: (connection: Connection) => Promise<T>) => Promise<T>;
}
