/**
 * The fetches of one run on the keyholder's side: counted, shared fairly with those of all other runs, searched for
 * private keys, passed to the fetcher. Request bodies and answers pass through the keyholder's memory: both need room
 * there before they are accepted.
 */
import { z } from "zod";
import { FetchFailed, type Fetcher } from "../fetcher/types";
import { FairShare, inScope, Preempted, type Scope } from "../../protocol/fairShare";
import { SHARED_LIMITS } from "../../protocol/limits";
import { inTurn } from "../loop";
import type { ServiceTime } from "./serviceTime";
import type { Tripwire } from "./tripwire";
import type { RunJob } from "./types";
import { parseJson } from "../../protocol/json";
import { aborted, within } from "../../protocol/within";

/** What all runs' fetches and ops share. */
export class RunShares {
  readonly frames: FairShare;
  readonly open: FairShare;
  readonly bodies: FairShare;
  readonly answers: FairShare;
  readonly ops = new FairShare({
    total: SHARED_LIMITS.opMemoryBytes,
    unit: OP_MEMORY_PER_CHAR * 2 ** 20,
    patienceMs: SHARED_LIMITS.patienceMs,
  });

  /** `fetchBytes` is the size of the largest body. */
  constructor(fetchBytes: number) {
    const { frameBytes, fetchesUnderWay, fetchBodyBytes, fetchAnswerBytes, patienceMs } = SHARED_LIMITS;
    this.frames = new FairShare({ total: frameBytes, unit: fetchBytes, patienceMs });
    this.open = new FairShare({ total: fetchesUnderWay, patienceMs });
    this.bodies = new FairShare({ total: fetchBodyBytes, unit: fetchBytes, patienceMs });
    this.answers = new FairShare({ total: fetchAnswerBytes, unit: fetchBytes, patienceMs });
  }

  get taken(): Record<string, number> {
    const { frames, open, bodies, answers, ops } = this;
    return {
      frameBytes: frames.taken,
      fetches: open.taken,
      bodyBytes: bodies.taken,
      answerBytes: answers.taken,
      opBytes: ops.taken,
    };
  }
}

/**
 * Memory for each character of an op's arguments: as text and as the value in it, with two bytes a character, as bytes
 * twice, and the answer likewise.
 */
export const OP_MEMORY_PER_CHAR = 12;
/** Longer arguments of ops and fetches count against what all share. */
export const SHORT_ARGS_CHARS = 16_384;

export interface FetchParts {
  readonly fetcher: Pick<Fetcher, "fetchGuest" | "checkGuest">;
  readonly shares: RunShares;
}
interface OwnParts extends FetchParts {
  readonly time: Pick<ServiceTime, "unbilled" | "take" | "outside">;
}

export type FetchAnswer = { ok: true; value: string; body: Buffer } | { ok: false; code: string; message: string };
/** Passes the answer to the child; resolves when it has left the keyholder's memory. */
export type Deliver = (answer: FetchAnswer) => Promise<void>;

const guestFetchSchema = z.strictObject({
  url: z.string(),
  method: z.string().regex(/^[A-Z]{1,16}$/, "the method is not one word of letters"),
  redirect: z.enum(["follow", "error", "manual"]),
  headers: z.array(z.tuple([z.string(), z.string()])).max(256),
});

/** The request contains a private key that the action was given. */
export class KeyInRequest extends Error {}

export class RunFetches {
  /** Resolves when no body waits for its budget; until then no further body is read from the child. */
  bodiesAdmitted: Promise<unknown> = Promise.resolve();
  readonly #run: number;
  readonly #job: Pick<RunJob, "account" | "limits" | "permitted">;
  readonly #parts: OwnParts;
  readonly #tripwire: Tripwire;
  readonly #over: AbortSignal;

  constructor(
    run: number,
    job: Pick<RunJob, "account" | "limits" | "permitted">,
    parts: OwnParts,
    tripwire: Tripwire,
    over: AbortSignal,
  ) {
    this.#run = run;
    this.#job = job;
    this.#parts = parts;
    this.#tripwire = tripwire;
    this.#over = over;
  }

  /**
   * `args` is untrusted text from a child, parsed once there is room for it. What the fetch takes of the shares it
   * holds until its answer is delivered.
   * @throws KeyInRequest; Preempted when others needed the memory of an answer that the child did not read.
   */
  async serve(args: string, body: Buffer, deliver: Deliver): Promise<void> {
    const { fetchBytes } = this.#job.limits;
    if (body.length > fetchBytes)
      return deliver(refused("limit_exceeded", `the body is larger than ${fetchBytes} bytes`));
    const refusal = await inScope(this.#job.account, this.#over, async (scope) => {
      const answer = await this.#exchange(args, body, scope).catch((error: unknown) => refusalOf(error, scope.over));
      if (!answer.ok) return answer;
      return Promise.race([deliver(answer), aborted(scope.over)]);
    });
    if (refusal !== undefined) await deliver(refusal);
  }

  async #exchange(args: string, body: Buffer, scope: Scope): Promise<FetchAnswer> {
    const { fetchTimeoutMs, fetchBytes: maxBytes, lookups } = this.#job.limits;
    const { fetcher } = this.#parts;
    const startedAt = performance.now();
    const admitted = this.#admit(memoryOf(args, body), scope);
    this.bodiesAdmitted = Promise.allSettled([this.bodiesAdmitted, admitted]);
    await admitted;
    const parsed = guestFetchSchema.safeParse(parseJson(args));
    if (!parsed.success) return refused("fetch_failed", parsed.error.issues[0]?.message ?? "bad request");
    const request = parsed.data;
    await this.#parts.time.unbilled(this.#job.permitted?.());
    return this.#outside(scope, async (grow) => {
      const options = { signal: scope.over, run: this.#run, lookups, account: this.#job.account, grow };
      // Checked first: requests that are refused anyway need no search.
      if (this.#tripwire.isSet && body.length > 0) await fetcher.checkGuest(request.url, options);
      await this.#requireNoKey([request.url, ...request.headers.flat(), body]);
      const timeoutMs = Math.max(1, Math.ceil(fetchTimeoutMs - (performance.now() - startedAt)));
      const { response, body: answer } = await fetcher.fetchGuest({ ...request, timeoutMs, maxBytes }, body, options);
      return { ok: true, value: JSON.stringify(response), body: answer };
    });
  }

  /** The way there and back is billed, but for what it waits until others leave room for its answer. */
  async #outside<T>(scope: Scope, way: (grow: () => Promise<void>) => Promise<T>): Promise<T> {
    const { time, shares } = this.#parts;
    let isOver = false;
    let back = time.outside();
    const grow = async (): Promise<void> => {
      back();
      await this.#take(shares.answers, this.#job.limits.fetchBytes, scope);
      if (!isOver) back = time.outside();
    };
    try {
      return await way(grow);
    } finally {
      isOver = true;
      back();
    }
  }

  /** Waits for its place and for room for arguments and body, no longer than a fetch may take. */
  async #admit(bytes: number, scope: Scope): Promise<void> {
    const { open, bodies } = this.#parts.shares;
    const admitted = async (): Promise<void> => {
      await this.#take(open, 1, scope);
      if (bytes > 0) await this.#take(bodies, bytes, scope);
    };
    const { fetchTimeoutMs } = this.#job.limits;
    await within(fetchTimeoutMs, admitted(), () => {
      throw new FetchFailed("timed_out", `it could not begin within ${fetchTimeoutMs} ms`);
    });
  }

  async #take(share: FairShare, amount: number, scope: Scope): Promise<void> {
    await this.#parts.time.take(share, amount, scope, this.#job.account);
  }

  async #requireNoKey(parts: readonly (string | Buffer)[]): Promise<void> {
    const isIn = await this.#tripwire.isIn(parts, (search) => inTurn(this.#job.account, search, this.#over));
    if (isIn) throw new KeyInRequest();
  }
}

const memoryOf = (args: string, body: Buffer): number =>
  body.length + (args.length > SHORT_ARGS_CHARS ? args.length * OP_MEMORY_PER_CHAR : 0);

const CROWDED = "other accounts needed what this one's fetches held; make fewer or shorter ones at once";

/** What the guest is told, which it can catch. */
function refusalOf(error: unknown, over: AbortSignal): FetchAnswer {
  if (over.aborted && over.reason instanceof Preempted) return refused("limit_exceeded", CROWDED);
  if (!(error instanceof FetchFailed)) throw error;
  const isLimit = error.code === "too_large" || error.code === "timed_out" || error.code === "limit_exceeded";
  return refused(isLimit ? "limit_exceeded" : "fetch_failed", error.message);
}

function refused(code: string, message: string): FetchAnswer {
  return { ok: false, code, message: `fetch: ${message}` };
}
