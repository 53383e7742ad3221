/** The keyholder's memory for large code, which accounts share fairly: code in requests, and code that runs by CID. */
import { FairShare, type Grant, type Scope } from "../../protocol/fairShare";
import { RUN_LIMITS, SHARED_LIMITS } from "../../protocol/limits";

/** Runs with larger code, or a larger request, wait for their share of memory before it is read. */
export const LARGE_CODE_BYTES = 64 * 1_024;
/**
 * Memory for each byte of a request: as text and as the code in it, both with two bytes a character if one of them
 * needs it, and as the bytes that go to the child.
 */
export const MEMORY_PER_REQUEST_BYTE = 8;
/** For each byte of stored code: text with two bytes a character, and the bytes it is read from or sent as. */
export const MEMORY_PER_STORED_BYTE = 3;
/** Less than the caller waits for the permission. */
const WAIT_MS = 20_000;

export interface CodeMemoryOptions {
  readonly totalBytes?: number;
  /** Kept free for each account that holds nothing. */
  readonly unitBytes?: number;
  readonly waitMs?: number;
}

export class CodeMemory {
  readonly #share: FairShare;
  readonly #waitMs: number;

  constructor(options: CodeMemoryOptions = {}) {
    const { totalBytes: total = SHARED_LIMITS.codeMemoryBytes, waitMs = WAIT_MS } = options;
    const { unitBytes: unit = MEMORY_PER_REQUEST_BYTE * RUN_LIMITS.codeBytes } = options;
    this.#share = new FairShare({ total, unit });
    this.#waitMs = waitMs;
  }

  get taken(): number {
    return this.#share.taken;
  }

  /** Runs that wait for memory. */
  get waiting(): number {
    return this.#share.waiting;
  }

  /** Rejects with Crowded when there was no room for too long. */
  take(scope: Scope, bytes: number): Promise<Grant> {
    return scope.take(this.#share, bytes, { withinMs: this.#waitMs });
  }
}
