/** The code of a run, given as bytes or by CID. Bytes from disk or a gateway are hashed again before they run. */
import { isUtf8 } from "node:buffer";
import { LRUCache } from "lru-cache";
import { KeywrightError } from "../../protocol/errors";
import { parseCid } from "../../protocol/cid";
import type { Cid } from "../../protocol/ids";
import { FetchFailed, type Fetcher } from "../fetcher/types";
import { free } from "../../protocol/free";
import { inScope, type Grant, type Scope } from "../../protocol/fairShare";
import type { CidComputer } from "../../protocol/cidComputer";
import { aborted } from "../../protocol/within";
import type { LargeRequest } from "../requests";
import { LARGE_CODE_BYTES, MEMORY_PER_STORED_BYTE, RunCode, type CodeMemory } from "./memory";
import type { CodeStore } from "./store";

/** The code a request names; `code` only when the request contains it. */
export interface CodeSource {
  readonly cid: Cid;
  readonly code?: RunCode;
  /** Use only code stored here; do not fetch it. */
  readonly keptOnly?: boolean;
}

/** The code in a run's request: the code itself, its CID, or both. */
export interface NamedCode {
  /** Taken out of the request when it has been read. */
  code?: string | undefined;
  readonly cid?: string | undefined;
  readonly keptOnly?: boolean | undefined;
}

/** For whom code is used. */
export interface CodeUser {
  readonly account: string;
  /** Any of them is aborted when it need not wait for memory any more. */
  readonly signals?: AbortSignal[];
}

/** Code that is held once for all runs of it whose child does not have it yet. */
interface SharedCode {
  readonly bytes: Buffer;
  runs: number;
  /** Of code that a request brought: nobody but its runs has the bytes, which are freed after this and the last run. */
  stored: Promise<void> | undefined;
}

/** Shared by all runs that wait for the same code. */
interface CodeFetch {
  readonly bytes: Promise<Buffer>;
  waiting: number;
  end(): void;
}

type Work<T> = (code: RunCode) => Promise<T>;

/** Runs of one account that may wait for code from a gateway; further ones are refused. */
const WAITING_PER_ACCOUNT = 16;
/** The longest that code may take to arrive, over all gateways. */
const FETCH_TIMEOUT_MS = 45_000;
const MAX_UNUSABLE = 10_000;
/** The bytes of a CID stay what they are; that they are too many is what a gateway says. */
const TOO_LARGE_MS = 10 * 60_000;

export class Code {
  /** Runs that name the same code share its bytes, one read and one fetch. */
  readonly #held = new Map<Cid, SharedCode>();
  readonly #reads = new Map<Cid, Promise<Buffer | undefined>>();
  readonly #fetches = new Map<Cid, CodeFetch>();
  readonly #waiting = new Map<string, number>();
  /** CIDs of what no run can use: a run that ends before it began is free, and would have it fetched again. */
  readonly #unusable = new LRUCache<Cid, "not_text" | "too_large">({ max: MAX_UNUSABLE });
  readonly #cids: Pick<CidComputer, "of">;
  readonly #store: CodeStore;
  readonly #fetcher: Pick<Fetcher, "fetchCode">;
  readonly #maxBytes: number;
  readonly #memory: CodeMemory;

  constructor(
    cids: Pick<CidComputer, "of">,
    store: CodeStore,
    fetcher: Pick<Fetcher, "fetchCode">,
    maxBytes: number,
    memory: CodeMemory,
  ) {
    this.#cids = cids;
    this.#store = store;
    this.#fetcher = fetcher;
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  /**
   * Code sent together with its CID comes from the relayers' shared store, which is trusted no more than a gateway.
   * @param besideBytes what is kept of the request beside its code, which counts as its memory, too
   * @throws KeywrightError `invalid_value` when neither is given, `invalid_cid`, `code_too_large`, `code_unavailable`
   * when code and CID do not match.
   */
  async identify(request: NamedCode, large?: LargeRequest, besideBytes = 0): Promise<CodeSource> {
    const { cid, keptOnly = false } = request;
    const named = cid === undefined ? undefined : requireCid(cid);
    const bytes = bytesOf(request, large);
    if (bytes === undefined) {
      if (named === undefined) throw new KeywrightError("invalid_value", "A run needs code or a CID.");
      large?.memory.shrink(besideBytes);
      large?.memory.keep();
      return { cid: named, keptOnly };
    }
    this.#requireSize(bytes.length);
    const own = await this.#cids.of(bytes);
    if (named !== undefined && named !== own)
      throw otherBytes("The bytes in the shared store are not those of the CID.");
    large?.memory.shrink(bytes.length + besideBytes);
    const code = new RunCode(bytes, large?.over, () => large?.memory.rest());
    code.freeAfter(Promise.resolve());
    return { cid: own, code };
  }

  /**
   * Gives `work` the code of an authorised run, which counts as the account's memory until `work` drops it or ends,
   * however it ends. Unauthorised code is neither fetched nor stored.
   * @throws KeywrightError `code_not_found`, `code_unavailable`, `code_too_large`, `queue_full` when too many runs of
   * the account wait for code. Crowded when there is no memory for it. The signal's reason.
   */
  async use<T>(
    { cid, code, keptOnly = false }: CodeSource,
    { account, signals = [] }: CodeUser,
    work: Work<T>,
  ): Promise<T> {
    if (code !== undefined) {
      const shared = this.#heldAs(cid, code.bytes, account);
      code.share(shared.bytes, () => this.#leaveHeld(cid, shared));
      return work(code);
    }
    if (!keptOnly) this.#requireUsable(cid);
    return inScope(account, AbortSignal.any(signals), async (scope) => {
      const memory = await this.#reserved(cid, keptOnly, scope);
      const shared = await this.#shared(cid, keptOnly, account, scope.over);
      memory?.shrink(shared.bytes.length);
      const letGo = (): void => (memory?.rest(), this.#leaveHeld(cid, shared));
      const loaded = new RunCode(shared.bytes, memory && scope.over, letGo);
      try {
        return await work(loaded);
      } finally {
        loaded.leave();
      }
    });
  }

  /** As much as loading it takes at most. Small code does not wait for memory, as small requests do not. */
  async #reserved(cid: Cid, keptOnly: boolean, scope: Scope): Promise<Grant | undefined> {
    const known = this.#held.get(cid)?.bytes.length ?? this.#store.bytesOf(cid);
    const bytes = known ?? (keptOnly ? notKept(cid) : this.#maxBytes);
    return known !== undefined && known <= LARGE_CODE_BYTES
      ? undefined
      : this.#memory.take(scope, bytes * MEMORY_PER_STORED_BYTE);
  }

  /** Counts the run as one that holds the code. */
  async #shared(cid: Cid, keptOnly: boolean, account: string, over: AbortSignal): Promise<SharedCode> {
    if (this.#held.has(cid)) this.#store.use(cid, account);
    const bytes = this.#held.get(cid)?.bytes ?? (await this.#loaded(cid, keptOnly, account, over));
    // Another run that shared the read may hold it already.
    const shared = this.#held.get(cid) ?? { bytes, runs: 0, stored: undefined };
    this.#held.set(cid, shared);
    shared.runs++;
    return shared;
  }

  /** The bytes that runs of this code have already, or else these, which a request brought. */
  #heldAs(cid: Cid, bytes: Buffer, account: string): SharedCode {
    const held = this.#held.get(cid);
    const shared: SharedCode = held ?? { bytes, runs: 0, stored: Promise.resolve() };
    this.#held.set(cid, shared);
    shared.runs++;
    const stored = this.#keep(cid, shared.bytes, account);
    shared.stored = shared.stored?.then(() => stored);
    return shared;
  }

  #leaveHeld(cid: Cid, shared: SharedCode): void {
    if (--shared.runs > 0) return;
    this.#held.delete(cid);
    void shared.stored?.then(() => free(shared.bytes));
  }

  async #loaded(cid: Cid, keptOnly: boolean, account: string, over: AbortSignal): Promise<Buffer> {
    const kept = await this.#keptOnce(cid, account);
    const code = kept ?? (keptOnly ? notKept(cid) : await this.#waitFor(cid, account, over));
    this.#requireSize(code.length);
    if (!isUtf8(code)) {
      this.#unusable.set(cid, "not_text");
      throw notText();
    }
    void this.#keep(cid, code, account);
    return code;
  }

  #keep(cid: Cid, code: Buffer, account: string): Promise<void> {
    return this.#store.keep(cid, code, account).catch(() => undefined);
  }

  #keptOnce(cid: Cid, account: string): Promise<Buffer | undefined> {
    const running = this.#reads.get(cid);
    if (running !== undefined) return running;
    const kept = this.#kept(cid, account).finally(() => this.#reads.delete(cid));
    this.#reads.set(cid, kept);
    return kept;
  }

  async #kept(cid: Cid, account: string): Promise<Buffer | undefined> {
    const bytes = await this.#store.read(cid, account);
    if (bytes === undefined || (await this.#cids.of(bytes)) === cid) return bytes;
    await this.#store.drop(cid);
    return undefined;
  }

  /** A fetch that nobody waits for any more ends: its memory was that of those who waited. */
  async #waitFor(cid: Cid, account: string, over: AbortSignal): Promise<Buffer> {
    const waiting = this.#waiting.get(account) ?? 0;
    if (waiting >= WAITING_PER_ACCOUNT) throw tooManyWait();
    this.#waiting.set(account, waiting + 1);
    const fetch = this.#fetches.get(cid) ?? this.#fetch(cid);
    fetch.waiting += 1;
    try {
      return await Promise.race([fetch.bytes, aborted(over)]);
    } finally {
      fetch.waiting -= 1;
      if (fetch.waiting === 0) fetch.end();
      this.#leave(account);
    }
  }

  #leave(account: string): void {
    const left = (this.#waiting.get(account) ?? 1) - 1;
    if (left === 0) this.#waiting.delete(account);
    else this.#waiting.set(account, left);
  }

  #fetch(cid: Cid): CodeFetch {
    const left = new AbortController();
    const forget = (): void => void (this.#fetches.get(cid) === fetch && this.#fetches.delete(cid));
    const signal = AbortSignal.any([left.signal, AbortSignal.timeout(FETCH_TIMEOUT_MS)]);
    const fetch: CodeFetch = {
      bytes: this.#fetched(cid, signal).finally(forget),
      waiting: 0,
      end: () => (forget(), left.abort()),
    };
    this.#fetches.set(cid, fetch);
    return fetch;
  }

  async #fetched(cid: Cid, signal: AbortSignal): Promise<Buffer> {
    const bytes = await this.#fetcher.fetchCode(cid, this.#maxBytes, { signal }).catch((error: unknown) => {
      if (error instanceof FetchFailed && error.code === "too_large")
        this.#unusable.set(cid, "too_large", { ttl: TOO_LARGE_MS });
      throw notFetched(cid, error);
    });
    if ((await this.#cids.of(bytes)) !== cid) throw otherBytes("The bytes a gateway gave are not those of the CID.");
    return bytes;
  }

  /** What is here already came from a request. */
  #requireUsable(cid: Cid): void {
    const problem = this.#unusable.get(cid);
    if (problem === undefined || this.#held.has(cid) || this.#store.bytesOf(cid) !== undefined) return;
    throw problem === "not_text" ? notText() : tooLarge(cid);
  }

  #requireSize(bytes: number): void {
    if (bytes > this.#maxBytes)
      throw new KeywrightError("code_too_large", `The code is ${bytes} bytes; at most ${this.#maxBytes} are accepted.`);
  }
}

function requireCid(text: string): Cid {
  const cid = parseCid(text);
  if (cid === undefined)
    throw new KeywrightError("invalid_cid", "The CID must be CIDv0, or CIDv1 of dag-pb and sha2-256.");
  return cid;
}

function otherBytes(detail: string): KeywrightError {
  return new KeywrightError("code_unavailable", detail, {}, { retryAfterSeconds: 5 });
}

const notText = (): KeywrightError =>
  new KeywrightError("code_not_found", "The content of this CID is not UTF-8 text.");

const tooLarge = (cid: Cid): KeywrightError => new KeywrightError("code_too_large", `The code of ${cid} is too large.`);

function tooManyWait(): KeywrightError {
  return new KeywrightError(
    "queue_full",
    `At most ${WAITING_PER_ACCOUNT} runs of an account wait for code at the same time.`,
    {},
    { retryAfterSeconds: 5 },
  );
}

function notKept(cid: Cid): never {
  throw new KeywrightError("code_not_found", `This executor does not keep the code of ${cid}.`);
}

/** Takes the code out of the request, which lives as long as the run. */
function bytesOf(request: NamedCode, large: LargeRequest | undefined): Buffer | undefined {
  const bytes = large?.code ?? (request.code === undefined ? undefined : Buffer.from(request.code, "utf8"));
  delete request.code;
  delete large?.code;
  return bytes;
}

function notFetched(cid: Cid, error: unknown): unknown {
  if (!(error instanceof FetchFailed)) return error;
  if (error.code === "not_found")
    return new KeywrightError("code_not_found", `No code was found for ${cid}; send it once as code, or publish it.`);
  if (error.code === "too_large") return tooLarge(cid);
  return new KeywrightError("code_unavailable", `The code of ${cid} could not be fetched.`, undefined, {
    cause: error.message,
    retryAfterSeconds: 5,
  });
}
