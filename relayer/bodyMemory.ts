/**
 * A relayer's memory for large request bodies, and for code that it reads from the store for a run: taken by account,
 * before they are read.
 */
import { Crowded, FairShare, type Grant, type Scope } from "../protocol/fairShare";
import { KeywrightError } from "../protocol/errors";
import { MIB, SHARED_LIMITS, WIRE_LIMITS } from "../protocol/limits";

/** Up to this they do not count once they are there. */
export const QUICK_BYTES = 64 * 1_024;
export const MEDIUM_BYTES = MIB;
/** Memory for each byte of a body: as it arrives, and as text with two bytes a character, twice while it is parsed. */
export const MEMORY_PER_BYTE = 4;
/** The longest that one waits to be read. */
const MAX_WAIT_MS = 30_000;

/** Whose memory is taken, until the scope is left. */
export interface BodyMemory {
  readonly scope: Scope;
  /** Its id; of a caller without an account the network of its address. */
  readonly account: string;
  /** The caller has no account. */
  readonly isAnonymous?: boolean;
}

/** Addresses cost nothing: bodies of callers without an account keep out only each other, of one network as one. */
export interface BodyShare {
  readonly ofAccounts: FairShare;
  readonly ofAnonymous: FairShare;
}

/** Callers without an account have so much beside what accounts share, or at least one body and few that wait. */
const ANONYMOUS = { part: 1 / 3, mostWaiting: 16 };

export function sharedBy(total: number, unit: number): BodyShare {
  const { patienceMs } = SHARED_LIMITS;
  const { part, mostWaiting } = ANONYMOUS;
  return {
    ofAccounts: new FairShare({ total, unit, mostWaiting: 512, patienceMs }),
    ofAnonymous: new FairShare({
      total: Math.floor(total * part),
      unit,
      mostWaiting,
      crowdOf: (network) => network,
      patienceMs,
    }),
  };
}
/** By size, so that who sends code of many megabytes keeps out only those who do the same. */
const medium = sharedBy(SHARED_LIMITS.mediumBodyMemoryBytes, MEMORY_PER_BYTE * MEDIUM_BYTES);
const large = sharedBy(SHARED_LIMITS.bodyMemoryBytes, MEMORY_PER_BYTE * WIRE_LIMITS.codeBodyBytes);

/** For so many bytes, each of which takes `perByte` of memory. */
export function takeMemory(bytes: number, perByte: number, room: BodyMemory): Promise<Grant> {
  return takeRoom(bytes > MEDIUM_BYTES ? large : medium, bytes * perByte, room);
}

export async function takeRoom(share: BodyShare, amount: number, room: BodyMemory): Promise<Grant> {
  const { scope, account, isAnonymous } = room;
  const own = isAnonymous ? share.ofAnonymous : share.ofAccounts;
  return scope.take(own, amount, { account, withinMs: MAX_WAIT_MS }).catch((error: unknown) => {
    throw error instanceof Crowded ? crowded(error.retryAfterSeconds) : error;
  });
}

export const crowded = (retryAfterSeconds: number): KeywrightError =>
  new KeywrightError("queue_full", "Too many bodies are under way at the moment.", {}, { retryAfterSeconds });

const BYTES_OF_VALUE = 64;

/** About what bytes or a value of JSON take at most: of text two bytes a character. */
export function memoryOf(value: unknown): number {
  if (value instanceof Uint8Array) return value.byteLength;
  if (typeof value === "string") return BYTES_OF_VALUE + 2 * value.length;
  if (typeof value !== "object" || value === null) return BYTES_OF_VALUE;
  return Object.entries(value).reduce((sum, [name, one]) => sum + memoryOf(name) + memoryOf(one), BYTES_OF_VALUE);
}
