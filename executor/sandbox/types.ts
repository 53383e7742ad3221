/**
 * The seam between the keyholder and the sandbox. The keyholder decides who may run what and serves the abilities
 * ("ops"); the pool runs the code in a child process that holds nothing. Everything that crosses is JSON text or a
 * number, never an object with behaviour.
 */
import type { RunErrorCode } from "../../protocol/errors";
import type { RunLimits } from "../../protocol/limits";

export type { RunErrorCode, RunLimits };

export interface RunError {
  code: RunErrorCode;
  message: string;
  /** The guest's own stack, when it threw. Absent with `key_exposed`. */
  stack?: string;
}

/** One ability the guest asks for. Carries no key, no CID and no account: the handler is bound to its run. */
export interface OpCall {
  name: string;
  /** JSON text of the guest's argument (an object), at most 1 MiB. Unchecked beyond that: the handler validates. */
  args: string;
  /** Aborted when the run is over: what nobody waits for any more is not done. */
  over?: AbortSignal;
}

export type OpAnswer =
  | {
      ok: true;
      /** JSON text of the answer. */
      value: string;
      /** Keys (hex, with or without 0x) this answer hands to the guest: the tripwire watches for them from now on. */
      exposes?: string[];
    }
  | {
      ok: false;
      /**
       * Thrown inside the guest as an Error with this `code`. `permission_denied` left uncaught becomes the code of the
       * run; any other code left uncaught is a `threw`.
       */
      code: string;
      message: string;
    };

/**
 * Serves `keyOps`. The pool counts key operations and private key reads against the limits before it asks. A rejection of the promise counts as our fault.
 */
export type OpHandler = (call: OpCall) => Promise<OpAnswer>;

/** Every op the keyholder serves, by the name used on the channel. */
export const keyOps = [
  "signMessage",
  "signTypedData",
  "signTransaction",
  "signDigest",
  "signEd25519",
  "signSchnorr",
  "signP256",
  "getPublicKey",
  "Encrypt",
  "Decrypt",
  "getPrivateKey",
  "getActionPrivateKey",
  "signEd25519AsAction",
  "signSchnorrAsAction",
  "signP256AsAction",
  "getActionPublicKey",
  "getActionWalletAddress",
] as const;
export type KeyOp = (typeof keyOps)[number];

/** The ops that hand a private key to the guest; counted against `privateKeyReads` as well. */
export const privateKeyReads: readonly KeyOp[] = ["getPrivateKey", "getActionPrivateKey"];

export interface RunJob {
  /** Opaque id of the account: fair shares and child affinity. */
  account: string;
  /** Opaque id of the key that runs: a warm child belongs to one account, key and CID. */
  key: string;
  code: string;
  cid: string;
  /** JSON text of an object: what `main` receives. */
  params: string;
  limits: RunLimits;
  ops: OpHandler;
  /** Aborting frees the place in the queue, or ends the run; `run` then rejects with RunCancelled. */
  signal?: AbortSignal;
  /** Called once, when a child is about to receive the code (queueing is over). */
  onStarted?(): void;
}

export interface RunOutcome {
  /** JSON text of the response; "null" when nothing was returned or set, or when the run failed. */
  response: string;
  /** What the guest logged, complete up to the moment it ended; empty with `key_exposed`. */
  logs: string;
  error?: RunError;
  /** Execution only, queueing excluded. */
  durationMs: number;
  /** "ours" when the guest is not to blame (and is not to be charged). */
  fault?: "ours";
}

/** The queue is full for this account or altogether (429, Retry-After). */
export class QueueFull extends Error {
  override readonly name = "QueueFull";
  constructor(readonly retryAfterSeconds: number) {
    super(`The queue for runs is full; try again in ${retryAfterSeconds} s`);
  }
}

/** The job's signal was aborted. */
export class RunCancelled extends Error {
  override readonly name = "RunCancelled";
  constructor() {
    super("The run was cancelled");
  }
}

/** The pool is closing and takes no new runs (503). */
export class PoolClosed extends Error {
  override readonly name = "PoolClosed";
  constructor() {
    super("The sandbox pool is closing");
  }
}

/** Full isolation was demanded and not reached; `missing` says what lacks, one sentence each. */
export class IsolationTooWeak extends Error {
  override readonly name = "IsolationTooWeak";
  constructor(readonly missing: string[]) {
    super(`The sandbox does not reach full isolation: ${missing.join("; ")}`);
  }
}

/** What the start-up self-test of a child found. */
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
  runs: number;
  /** Children that ended other than by our orderly recycling, since the start. */
  crashes: number;
}

export interface SandboxPool {
  /** Rejects with QueueFull, RunCancelled or PoolClosed; everything a guest does is an outcome, never a rejection. */
  run(job: RunJob): Promise<RunOutcome>;
  stats(): PoolStats;
  /** Takes no new runs, lets running ones finish (at most `drainMs`, default 8 s), then ends every child. */
  close(drainMs?: number): Promise<void>;
}
