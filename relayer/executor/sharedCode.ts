/**
 * Makes runs by CID work on every machine. Code sent with a run is stored for all relayers; if this machine's executor
 * does not have the code of a run, it gets the stored copy before it looks outside. The executor recomputes the CID, so
 * the store is trusted no more than a gateway.
 */
import { LRUCache } from "lru-cache";
import { KeywrightError } from "../../protocol/errors";
import type { ExecutorAnswer, ExecutorCall, ExecutorRequest } from "../../protocol/executor";
import { parseCid } from "../../protocol/cid";
import type { AccountId, Cid } from "../../protocol/ids";
import type { RequestedRun } from "./runExchange";
import type { RunQuestion } from "./runBody";
import type { CallContext, Executor } from "./client";
import type { SharedCodeStore } from "../store/sharedCode";
import { QUICK_BYTES, type BodyMemory } from "../bodyMemory";
import { free } from "../../protocol/free";
import { inScope, type Grant } from "../../protocol/fairShare";
import { MIB } from "../../protocol/limits";
import { within } from "../../protocol/within";

type Outcome = ExecutorAnswer<"run">;
type Ask = (changes: Partial<RunQuestion>) => Promise<RequestedRun>;
type Codes = Pick<SharedCodeStore, "sizeOf" | "read" | "keep" | "use" | "drop">;
/** The share that also large request bodies take of. Rejects with `queue_full`. */
type TakeMemory = (bytes: number, perByte: number, room: BodyMemory) => Promise<Grant>;

/** Whose run needs stored code, and until when. */
interface Asker {
  readonly account: AccountId;
  readonly left: AbortSignal;
}

/** A use is recorded at most once per this interval. */
const NOTED_FOR_MS = 60 * 60_000;
const MAX_NOTED = 50_000;
/** How long an answer waits for its code to be stored, so that the next run finds it on any machine. */
const STORED_WITHIN_MS = 250;
/** Copies being stored at a time; code beyond that is stored with a later run. */
const MAX_STORING_BYTES = 64 * MIB;
/** What even the smallest one counts for. */
const MIN_STORING_BYTES = MIB;
/** Memory for each byte of stored code while it is read: the database's message, the text in it (hex), the bytes. */
const READING_PER_BYTE = 8;
/** And then, until the executor has it: as text with two bytes a character, and what of it is being sent. */
const SENDING_PER_BYTE = 3;

export class CodeSharingExecutor implements Executor {
  /** By account and CID, for an hour: `used` if the use was recorded, `kept` if the code was stored, too. */
  readonly #noted = new LRUCache<string, "used" | "kept">({ max: MAX_NOTED, ttl: NOTED_FOR_MS });
  #storingBytes = 0;
  readonly #executor: Executor;
  readonly #store: Codes;
  readonly #takeMemory: TakeMemory;
  readonly #onError: (error: unknown) => void;

  constructor(executor: Executor, store: Codes, takeMemory: TakeMemory, onError: (error: unknown) => void) {
    this.#executor = executor;
    this.#store = store;
    this.#takeMemory = takeMemory;
    this.#onError = onError;
  }

  call<C extends ExecutorCall>(name: C, input: ExecutorRequest<C>, context?: CallContext): Promise<ExecutorAnswer<C>> {
    return this.#executor.call(name, input, context);
  }

  askRun(question: RunQuestion, context: CallContext = {}): RequestedRun {
    const ask = (changes: Partial<RunQuestion>): RequestedRun =>
      this.#executor.askRun({ ...question, ...changes }, context);
    const isByCid = question.code === undefined;
    const first = ask(isByCid ? { keptOnly: true } : {});
    let last = first;
    const askAgain: Ask = async (changes) => {
      last = ask(changes);
      await requireSameAccount(first, last);
      return last;
    };
    const left = new AbortController();
    const start = async (limitMs: number): Promise<Outcome> => {
      const outcome = await first.start(limitMs).catch(async (error: unknown) => {
        const cid = isByCid && hasCode(error, "code_not_found") ? parseCid(question.cid ?? "") : undefined;
        if (cid === undefined) throw error;
        const asker = { account: (await first.permission).accountId, left: left.signal };
        return this.#runNotKept(cid, asker, askAgain, limitMs);
      });
      return this.#shared(outcome, (await first.permission).accountId, question);
    };
    return {
      permission: first.permission,
      start,
      abandon: () => first.abandon(),
      leave: () => {
        left.abort(new KeywrightError("queue_full", "The client left before the run began."));
        last.leave();
      },
      get mayHaveRun() {
        return last.mayHaveRun;
      },
    };
  }

  async #shared(outcome: Outcome, accountId: AccountId, { code }: RunQuestion): Promise<Outcome> {
    // Such runs may be free, and storing their code would let clients fill the store at no cost.
    if (outcome.isFree || outcome.error?.code === "invalid_code") return outcome;
    const name = `${accountId} ${outcome.cid}`;
    const noted = this.#noted.get(name);
    if (noted !== "kept" && (noted === undefined || code !== undefined))
      await soon(this.#note(name, accountId, outcome.cid as Cid, code));
    return outcome;
  }

  /** Runs the stored code if there is any; else the executor fetches the code from a gateway. */
  async #runNotKept(cid: Cid, asker: Asker, ask: Ask, limitMs: number): Promise<Outcome> {
    try {
      const asked = await this.#askWithStored(cid, asker, ask);
      if (asked !== undefined) return await startUnlessLeft(asked, asker, limitMs);
    } catch (error) {
      if (!hasCode(error, "code_unavailable")) throw error;
      // The stored bytes do not match this CID.
      await this.#store.drop(cid).catch(this.#onError);
    }
    return startUnlessLeft(await ask({}), asker, limitMs);
  }

  /** Once it resolves, the executor has the code, and nothing here refers to it. */
  async #askWithStored(cid: Cid, { account, left }: Asker, ask: Ask): Promise<RequestedRun | undefined> {
    const bytes = await this.#found(this.#store.sizeOf(cid));
    if (bytes === undefined) return undefined;
    return inScope(account, left, async (scope) => {
      const code = await this.#readStored(cid, bytes, { scope, account });
      return code === undefined ? undefined : ask({ cid, code });
    });
  }

  async #readStored(cid: Cid, bytes: number, room: BodyMemory): Promise<string | undefined> {
    // As bodies: what is small does not count.
    const memory = bytes > QUICK_BYTES ? await this.#takeMemory(bytes, READING_PER_BYTE, room) : undefined;
    memory?.keep();
    const kept = await this.#found(this.#store.read(cid));
    room.scope.over.throwIfAborted();
    const code = kept?.toString("utf8");
    if (kept !== undefined) free(kept);
    memory?.shrink(bytes * SENDING_PER_BYTE);
    return code;
  }

  /** Without the store the run is made as if it had nothing. */
  #found<T>(asked: Promise<T | undefined>): Promise<T | undefined> {
    return asked.catch((error: unknown) => void this.#onError(error));
  }

  /** A failed copy never fails the run. */
  async #note(name: string, accountId: AccountId, cid: Cid, code: string | undefined): Promise<void> {
    const bytes = Math.max(MIN_STORING_BYTES, Buffer.byteLength(code ?? ""));
    if (this.#storingBytes + bytes > MAX_STORING_BYTES) return;
    this.#storingBytes += bytes;
    try {
      if (code === undefined) await this.#store.use(accountId, cid);
      else await this.#store.keep(accountId, cid, Buffer.from(code, "utf8"));
      this.#noted.set(name, code === undefined ? "used" : "kept");
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#storingBytes -= bytes;
    }
  }
}

/** Credit is reserved for the account of the first permission: the second must name the same account. */
async function requireSameAccount(first: RequestedRun, second: RequestedRun): Promise<void> {
  try {
    const [paying, now] = await Promise.all([first.permission, second.permission]);
    if (paying.accountId === now.accountId) return;
    throw new KeywrightError("unknown_key", "The key has left the account that pays for this run.");
  } catch (error) {
    second.abandon();
    throw error;
  }
}

const soon = (work: Promise<void>): Promise<void> => within(STORED_WITHIN_MS, work, () => undefined);

/** Its client may have left while it was asked for: the executor did not know the run then. */
function startUnlessLeft(asked: RequestedRun, { left }: Asker, limitMs: number): Promise<Outcome> {
  if (!left.aborted) return asked.start(limitMs);
  asked.abandon();
  return Promise.reject(left.reason as Error);
}

const hasCode = (error: unknown, code: string): boolean => error instanceof KeywrightError && error.code === code;
