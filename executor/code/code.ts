/** The code of a run, given as bytes or by CID. Bytes from disk or a gateway are hashed again before they run. */
import { KeywrightError } from "../../protocol/errors";
import { parseCid } from "../../protocol/cid";
import type { Cid } from "../../protocol/ids";
import { FetchFailed, type Fetcher } from "../fetcher/types";
import { inScope, type Grant, type Scope } from "../../protocol/fairShare";
import type { CidComputer } from "../../protocol/cidComputer";
import { LARGE_CODE_BYTES, MEMORY_PER_STORED_BYTE, type CodeMemory } from "./memory";
import type { CodeStore } from "./store";

/** The code a request names; `bytes` only when the request contains it. */
export interface CodeSource {
  readonly cid: Cid;
  readonly bytes?: Buffer;
  /** Use only code stored here; do not fetch it. */
  readonly keptOnly?: boolean;
}

/** The code in a run's request: the code itself, its CID, or both. */
export interface NamedCode {
  readonly code?: string | undefined;
  readonly cid?: string | undefined;
  readonly keptOnly?: boolean | undefined;
}

/** For whom code is used. */
export interface CodeUser {
  readonly account: string;
  /** Aborted when it need not wait for memory any more. */
  readonly signal?: AbortSignal;
}

/** The text of code, held once for all runs of it that have not ended. */
interface SharedText {
  readonly text: string;
  readonly bytes: number;
  runs: number;
}

type Work<T> = (text: string) => Promise<T>;

/** `ignoreBOM` keeps a leading byte-order mark, so that decoding and encoding round-trip. */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Runs of one account that may wait for code from a gateway; further ones are refused. */
const WAITING_PER_ACCOUNT = 16;
/** The longest that code may take to arrive, over all gateways. */
const FETCH_TIMEOUT_MS = 45_000;

export class Code {
  /** Runs that name the same code share one text, one read and one fetch. */
  readonly #texts = new Map<Cid, SharedText>();
  readonly #reads = new Map<Cid, Promise<Buffer | undefined>>();
  readonly #fetches = new Map<Cid, Promise<Buffer>>();
  readonly #waiting = new Map<string, number>();
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
   * @throws KeywrightError `invalid_value` when neither is given, `invalid_cid`, `code_too_large`, `code_unavailable`
   * when code and CID do not match.
   */
  async identify({ code, cid, keptOnly = false }: NamedCode): Promise<CodeSource> {
    const named = cid === undefined ? undefined : requireCid(cid);
    if (code === undefined) {
      if (named === undefined) throw new KeywrightError("invalid_value", "A run needs code or a CID.");
      return { cid: named, keptOnly };
    }
    const bytes = Buffer.from(code, "utf8");
    this.#requireSize(bytes.length);
    const own = await this.#cids.of(bytes);
    if (named !== undefined && named !== own)
      throw otherBytes("The bytes in the shared store are not those of the CID.");
    return { cid: own, bytes };
  }

  /**
   * Gives `work` the code of an authorised run as text, which counts as the account's memory until it ends, however it
   * ends. Unauthorised code is neither fetched nor stored.
   * @throws KeywrightError `code_not_found`, `code_unavailable`, `code_too_large`, `queue_full` when too many runs of
   * the account wait for code. Crowded when there is no memory for it. The signal's reason.
   */
  async use<T>({ cid, bytes, keptOnly = false }: CodeSource, user: CodeUser, work: Work<T>): Promise<T> {
    const { account, signal } = user;
    // Its memory was taken with the request's.
    if (bytes !== undefined) return work(this.#textToKeep(cid, bytes, account));
    return inScope(account, signal, async (scope) => {
      const memory = await this.#reserved(cid, keptOnly, scope);
      const shared = await this.#shared(cid, keptOnly, account);
      try {
        memory?.shrink(memoryOf(shared));
        return await work(shared.text);
      } finally {
        if (--shared.runs === 0) this.#texts.delete(cid);
      }
    });
  }

  /** As much as loading it takes at most. Small code does not wait for memory, as small requests do not. */
  async #reserved(cid: Cid, keptOnly: boolean, scope: Scope): Promise<Grant | undefined> {
    const known = this.#texts.get(cid)?.bytes ?? this.#store.bytesOf(cid);
    const bytes = known ?? (keptOnly ? notKept(cid) : this.#maxBytes);
    return known !== undefined && known <= LARGE_CODE_BYTES
      ? undefined
      : this.#memory.take(scope, bytes * MEMORY_PER_STORED_BYTE);
  }

  /** Counts the run as one that has the text; the caller takes it off again. */
  async #shared(cid: Cid, keptOnly: boolean, account: string): Promise<SharedText> {
    const held = this.#texts.get(cid);
    if (held !== undefined) {
      this.#store.use(cid, account);
      held.runs++;
      return held;
    }
    const code = await this.#loaded(cid, keptOnly, account);
    // Another run that shared the read may have decoded it already.
    const shared = this.#texts.get(cid) ?? this.#decoded(cid, code, account);
    shared.runs++;
    return shared;
  }

  #decoded(cid: Cid, code: Buffer, account: string): SharedText {
    const shared = { text: this.#textToKeep(cid, code, account), bytes: code.length, runs: 0 };
    this.#texts.set(cid, shared);
    return shared;
  }

  async #loaded(cid: Cid, keptOnly: boolean, account: string): Promise<Buffer> {
    const kept = await this.#keptOnce(cid, account);
    return kept ?? (keptOnly ? notKept(cid) : this.#waitFor(cid, account));
  }

  #textToKeep(cid: Cid, code: Buffer, account: string): string {
    this.#requireSize(code.length);
    this.#store.keep(cid, code, account).catch(() => undefined);
    return textOf(code);
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

  async #waitFor(cid: Cid, account: string): Promise<Buffer> {
    const waiting = this.#waiting.get(account) ?? 0;
    if (waiting >= WAITING_PER_ACCOUNT) throw tooManyWait();
    this.#waiting.set(account, waiting + 1);
    try {
      return await this.#fetchedOnce(cid);
    } finally {
      this.#leave(account);
    }
  }

  #leave(account: string): void {
    const left = (this.#waiting.get(account) ?? 1) - 1;
    if (left === 0) this.#waiting.delete(account);
    else this.#waiting.set(account, left);
  }

  #fetchedOnce(cid: Cid): Promise<Buffer> {
    const running = this.#fetches.get(cid);
    if (running !== undefined) return running;
    const fetched = this.#fetched(cid).finally(() => this.#fetches.delete(cid));
    this.#fetches.set(cid, fetched);
    return fetched;
  }

  async #fetched(cid: Cid): Promise<Buffer> {
    const options = { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) };
    const bytes = await this.#fetcher.fetchCode(cid, this.#maxBytes, options).catch((error: unknown) => {
      throw notFetched(cid, error);
    });
    if ((await this.#cids.of(bytes)) !== cid) throw otherBytes("The bytes a gateway gave are not those of the CID.");
    return bytes;
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

/** As V8 stores it, where only ASCII surely has one byte a character, and as the bytes that go to the child. */
function memoryOf({ text, bytes }: SharedText): number {
  return bytes + (text.length === bytes ? text.length : 2 * text.length);
}

function textOf(bytes: Buffer): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw new KeywrightError("code_not_found", "The content of this CID is not UTF-8 text.");
  }
}

function notFetched(cid: Cid, error: unknown): unknown {
  if (!(error instanceof FetchFailed)) return error;
  if (error.code === "not_found")
    return new KeywrightError("code_not_found", `No code was found for ${cid}; send it once as code, or publish it.`);
  if (error.code === "too_large") return new KeywrightError("code_too_large", `The code of ${cid} is too large.`);
  return new KeywrightError(
    "code_unavailable",
    `The code of ${cid} could not be fetched.`,
    {},
    { cause: error.message, retryAfterSeconds: 5 },
  );
}
