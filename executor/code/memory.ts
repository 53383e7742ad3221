/** The keyholder's memory for large code, which accounts share fairly: code in requests, and code that runs by CID. */
import { FairShare, type Grant, type Scope } from "../../protocol/fairShare";
import { free } from "../../protocol/free";
import { MIB, RUN_LIMITS, SHARED_LIMITS } from "../../protocol/limits";

/** Runs with larger code, or a larger request, wait for their share of memory before it is read. */
export const LARGE_CODE_BYTES = 64 * 1_024;
/**
 * Memory for each byte of a request while it is read: as it arrived, as text and as the code in it, both with two bytes
 * a character if one of them needs it, and as the code's bytes, which are all that is left of it then.
 */
export const MEMORY_PER_REQUEST_BYTE = 8;
/** For each byte of stored code while it is read: what the thread that hashes it gets is a copy. */
export const MEMORY_PER_STORED_BYTE = 2;
/** Less than the caller waits for the permission. */
const WAIT_MS = 20_000;

/** Requests of a megabyte, and stored code of four, wait only for others that are no larger. */
const MEDIUM_MEMORY_BYTES = MEMORY_PER_REQUEST_BYTE * MIB;

export interface CodeMemoryOptions {
  /** For large code. */
  readonly totalBytes?: number;
  /** Kept free for each account that holds nothing. */
  readonly unitBytes?: number;
  readonly waitMs?: number;
}

/** A run's code, and what it takes of the memory, until a child has it: what the run does then may take long. */
export class RunCode {
  #bytes: Buffer | undefined;
  /** Aborted with Preempted when others need the memory: the run has to leave the queue. Never once it was dropped. */
  readonly over: AbortSignal | undefined;
  readonly #letGo: () => void;
  #lastUse: Promise<unknown> | undefined;
  #left: (() => void) | undefined;
  #isBeingSent = false;

  constructor(bytes: Buffer, over?: AbortSignal, letGo: () => void = () => undefined) {
    this.#bytes = bytes;
    this.over = over;
    this.#letGo = letGo;
  }

  /** Text in UTF-8. Throws when it was dropped. */
  get bytes(): Buffer {
    if (this.#bytes === undefined) throw new Error("the run's code was dropped already");
    return this.#bytes;
  }

  /**
   * Nobody else has the bytes: they are freed once they are dropped and `lastUse` has ended. As garbage, a few of many
   * megabytes would have all of the heap collected.
   */
  freeAfter(lastUse: Promise<unknown>): void {
    this.#lastUse = lastUse;
  }

  /** Has the equal bytes of another run, until it drops them: its own are freed. */
  share(bytes: Buffer, left: () => void): void {
    const own = this.bytes;
    this.#bytes = bytes;
    this.#left = left;
    this.#lastUse = undefined;
    if (own !== bytes) free(own);
  }

  /** For a child: the bytes stay as they are until `drop`. */
  send(): Buffer {
    this.#isBeingSent = true;
    return this.bytes;
  }

  /** Whatever has become of the run: it is not needed any more, unless a write to a child is under way. */
  leave(): void {
    if (!this.#isBeingSent) this.drop();
  }

  /** Only when no write to the child is under way any more. */
  drop(): void {
    const bytes = this.#bytes;
    if (bytes === undefined) return;
    this.#bytes = undefined;
    this.#letGo();
    this.#left?.();
    void this.#lastUse?.finally(() => free(bytes));
  }
}

export class CodeMemory {
  readonly #large: FairShare;
  readonly #medium: FairShare;
  readonly #waitMs: number;

  constructor(options: CodeMemoryOptions = {}) {
    const { totalBytes: total = SHARED_LIMITS.codeMemoryBytes, waitMs = WAIT_MS } = options;
    const { unitBytes: unit = MEMORY_PER_REQUEST_BYTE * RUN_LIMITS.codeBytes } = options;
    const { mediumCodeMemoryBytes, patienceMs } = SHARED_LIMITS;
    this.#large = new FairShare({ total, unit, patienceMs });
    this.#medium = new FairShare({ total: mediumCodeMemoryBytes, unit: MEDIUM_MEMORY_BYTES, patienceMs });
    this.#waitMs = waitMs;
  }

  get taken(): number {
    return this.#large.taken + this.#medium.taken;
  }

  /** Runs that wait for memory. */
  get waiting(): number {
    return this.#large.waiting + this.#medium.waiting;
  }

  /** Rejects with Crowded when there was no room for too long. */
  take(scope: Scope, bytes: number): Promise<Grant> {
    const share = bytes <= MEDIUM_MEMORY_BYTES ? this.#medium : this.#large;
    return scope.take(share, bytes, { withinMs: this.#waitMs });
  }
}
