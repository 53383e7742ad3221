/**
 * The interface between keyholder and sandbox. The keyholder authorizes runs and serves their privileged operations
 * ("ops"); the pool runs the code in a child process without secrets. Only JSON text and numbers cross, never objects
 * with behaviour.
 */
import type { RunErrorCode } from "../../protocol/errors";
import type { RunLimits } from "../../protocol/limits";
import type { RunCode } from "../code/memory";

/** Addresses of public JSON-RPC endpoints by the chain's name. */
export type RpcUrls = Readonly<Record<string, string>>;
export type { RunErrorCode, RunLimits };

/** Of an error's message, and of its stack: what the guest says is cut to it, whatever it has patched. */
export const MAX_ERROR_CHARS = 8_192;

export interface RunError {
  code: RunErrorCode;
  message: string;
  /** The guest's own stack trace, if it threw. Absent with `key_exposed`. */
  stack?: string;
}

/** A privileged operation the guest requests. Carries no key, CID or account: the handler is bound to its run. */
export interface OpCall {
  name: string;
  /** JSON text of the guest's argument (an object), at most 1 MiB. Not validated otherwise: the handler does that. */
  args: string;
  /** Aborted when the run is over, so that no further work is done for it. */
  over?: AbortSignal;
}

export type OpAnswer =
  | {
      ok: true;
      /** JSON text of the answer. */
      value: string;
      /** Private keys (hex, with or without 0x) in this answer: the tripwire watches for them from now on. */
      exposes?: string[];
    }
  | {
      ok: false;
      /**
       * Thrown inside the guest as an Error with this `code`. `permission_denied`, `limit_exceeded` and
       * `budget_exceeded` left uncaught become the code of the run; any other code left uncaught is a `threw`.
       */
      code: string;
      message: string;
    };

/**
 * Serves the ops of the table. The pool checks the limits of key operations and private key reads before it calls. A
 * rejected promise counts as the service's fault.
 */
export type OpHandler = (call: OpCall) => Promise<OpAnswer>;

export interface RunJob {
  /** Opaque id of the account, for fair shares and child affinity. */
  account: string;
  /** Whose share its places count for, where it is not the account's. */
  share?: string;
  /** Opaque id of the key that starts the run: a warm child belongs to one account, key and CID. */
  key: string;
  code: RunCode;
  cid: string;
  /** JSON text of an object, the argument of `main`, in UTF-8: a queue of text would take twice the memory. */
  params: Buffer;
  limits: RunLimits;
  ops: OpHandler;
  /** Fetches and imports wait for this, as `ops` does by itself; a rejection aborts `signal`. */
  permitted?(): Promise<unknown>;
  /** Aborting removes the job from the queue; no effect once it has begun. `run` then rejects with RunCancelled. */
  left?: AbortSignal;
  /** Aborting removes the job from the queue or ends the run; `run` then rejects with RunCancelled. */
  signal?: AbortSignal;
  /** Called once, when queueing is over and a child is about to receive the code. */
  onStarted?(): void;
}

export interface RunOutcome {
  /** JSON text of the response; "null" when nothing was returned or set, or when the run failed. */
  response: string;
  /** JSON text: signatures by name, made by the functions of older systems. */
  signatures?: string;
  /** The guest's logs, complete up to its end; empty with `key_exposed`. */
  logs: string;
  error?: RunError;
  /** Execution only, without queueing. */
  durationMs: number;
  /** "service" when the service is at fault: the run is not charged. */
  fault?: "service";
}

/** Ends the run, whether or not the guest would catch the error. */
export class EndsRun extends Error {
  constructor(readonly error: RunError) {
    super(error.message);
  }
}

/** The job's signal was aborted. */
export class RunCancelled extends Error {
  override readonly name = "RunCancelled";
  constructor() {
    super("The run was cancelled");
  }
}

/** The pool is closing and accepts no new runs (503). */
export class PoolClosed extends Error {
  override readonly name = "PoolClosed";
  constructor() {
    super("The sandbox pool is closing");
  }
}

/** Full isolation was required and not reached; `missing` lists what is missing, one sentence each. */
export class IsolationTooWeak extends Error {
  override readonly name = "IsolationTooWeak";
  constructor(readonly missing: string[]) {
    super(`The sandbox does not reach full isolation: ${missing.join("; ")}`);
  }
}

/** The result of a child's self-test at start. */
export interface SandboxLevel {
  /** `full`: every barrier held. `partial`: some did. `none`: the child is an ordinary process. */
  level: "full" | "partial" | "none";
  /** One sentence per barrier that does not hold. */
  missing: string[];
}

export interface PoolStats {
  level: SandboxLevel;
  size: number;
  children: number;
  busy: number;
  queued: number;
  /** What is granted of each share at the moment; nothing when no run is under way. */
  held: Record<string, number>;
  runs: number;
  /** Children that exited for another reason than being ended by the pool, since the start. */
  crashes: number;
}

export interface SandboxPool {
  /** Rejects with Crowded, RunCancelled or PoolClosed; everything a guest does is an outcome, never a rejection. */
  run(job: RunJob): Promise<RunOutcome>;
  stats(): PoolStats;
  /** Accepts no new runs, lets active ones finish (at most `drainMs`, default 8 s), then ends every child. */
  close(drainMs?: number): Promise<void>;
}
