/**
 * The fetches of one run on the keyholder's side: counted, limited by budgets that all runs share, searched for private
 * keys, passed to the fetcher. Request bodies and answers pass through the keyholder's memory, so both are charged to
 * budgets before they are accepted.
 */
import { z } from "zod";
import { FetchFailed, type Fetcher } from "../fetcher/types";
import { SHARED_LIMITS } from "../../protocol/limits";
import { loopScheduler } from "../loopScheduler";
import { Budget, type Release } from "./budget";
import type { Tripwire } from "./tripwire";
import type { RunJob } from "./types";

/** Limits of all runs' fetches together; one account holds at most a quarter. */
export class FetchBudgets {
  readonly open = quartered(SHARED_LIMITS.fetchesUnderWay);
  readonly bodies = quartered(SHARED_LIMITS.fetchBodyBytes);
  readonly answers = quartered(SHARED_LIMITS.fetchAnswerBytes);
}

export interface FetchParts {
  readonly fetcher: Pick<Fetcher, "fetchGuest" | "checkGuest">;
  readonly budgets: FetchBudgets;
}

export type FetchAnswer =
  { ok: true; value: string; body: Buffer; sent: Release } | { ok: false; code: string; message: string };

const guestFetchSchema = z.strictObject({
  url: z.string(),
  method: z.string().regex(/^[A-Z]{1,16}$/, "the method is not one word of letters"),
  redirect: z.enum(["follow", "error", "manual"]),
  headers: z.array(z.tuple([z.string(), z.string()])).max(256),
});
type GuestFetch = z.infer<typeof guestFetchSchema>;

/** The request contains a private key that the action was given. */
export class KeyInRequest extends Error {}

export class RunFetches {
  /** Resolves when no body waits for its budget; until then no further body is read from the child. */
  bodiesAdmitted: Promise<unknown> = Promise.resolve();
  readonly #run: number;
  readonly #job: Pick<RunJob, "account" | "limits" | "permitted">;
  readonly #parts: FetchParts;
  readonly #tripwire: Tripwire;
  readonly #over: AbortSignal;

  constructor(
    run: number,
    job: Pick<RunJob, "account" | "limits" | "permitted">,
    parts: FetchParts,
    tripwire: Tripwire,
    over: AbortSignal,
  ) {
    this.#run = run;
    this.#job = job;
    this.#parts = parts;
    this.#tripwire = tripwire;
    this.#over = over;
  }

  /** `args` is untrusted JSON from a child. @throws KeyInRequest */
  async serve(args: unknown, body: Buffer): Promise<FetchAnswer> {
    const parsed = guestFetchSchema.safeParse(args);
    if (!parsed.success) return refused("fetch_failed", parsed.error.issues[0]?.message ?? "bad request");
    const { fetchBytes } = this.#job.limits;
    if (body.length > fetchBytes) return refused("limit_exceeded", `the body is larger than ${fetchBytes} bytes`);
    const held: Release[] = [];
    const release = (): void => held.forEach((each) => each());
    try {
      const answer = await this.#exchange(parsed.data, body, held);
      return { ok: true, value: JSON.stringify(answer.response), body: answer.body, sent: release };
    } catch (error) {
      release();
      if (!(error instanceof FetchFailed)) throw error;
      const isLimit = error.code === "too_large" || error.code === "timed_out" || error.code === "limit_exceeded";
      return refused(isLimit ? "limit_exceeded" : "fetch_failed", error.message);
    }
  }

  async #exchange(request: GuestFetch, body: Buffer, held: Release[]): ReturnType<Fetcher["fetchGuest"]> {
    const { fetchTimeoutMs: timeoutMs, fetchBytes: maxBytes, lookups } = this.#job.limits;
    const { fetcher, budgets } = this.#parts;
    const take = async (budget: Budget, amount: number): Promise<void> =>
      void held.push(await budget.take(this.#job.account, amount, this.#over));
    const admitted = take(budgets.open, 1).then(() =>
      body.length > 0 ? take(budgets.bodies, body.length) : undefined,
    );
    this.bodiesAdmitted = Promise.allSettled([this.bodiesAdmitted, admitted]);
    await admitted;
    await this.#job.permitted?.();
    const options = { signal: this.#over, run: this.#run, lookups, grow: () => take(budgets.answers, maxBytes) };
    // Checked first: requests that are refused anyway need no search.
    if (this.#tripwire.isSet && body.length > 0) await fetcher.checkGuest(request.url, options);
    await this.#requireNoKey([request.url, ...request.headers.flat(), body]);
    return fetcher.fetchGuest({ ...request, timeoutMs, maxBytes }, body, options);
  }

  async #requireNoKey(parts: readonly (string | Buffer)[]): Promise<void> {
    const slot = async (): Promise<void> => {
      await loopScheduler.slot(this.#job.account);
      this.#over.throwIfAborted();
    };
    if (await this.#tripwire.isIn(parts, slot)) throw new KeyInRequest();
  }
}

function quartered(total: number): Budget {
  return new Budget({ total, share: total / 4 });
}

function refused(code: string, message: string): FetchAnswer {
  return { ok: false, code, message: `fetch: ${message}` };
}
