/**
 * The imports of one run on the keyholder's side. A module passes through the keyholder's memory: it has room there
 * among the answers of all runs' fetches from before it is fetched, or taken from the cache, until it was delivered.
 */
import { z } from "zod";
import { FetchFailed } from "../fetcher/types";
import { inScope, type Scope } from "../../protocol/fairShare";
import { parseJson } from "../../protocol/json";
import { aborted } from "../../protocol/within";
import type { FetchAnswer, RunShares } from "./fetches";
import { BadImport, type ModuleCache } from "./imports";
import type { ServiceTime } from "./serviceTime";
import { EndsRun, type RunJob } from "./types";

export interface ImportParts {
  readonly modules: ModuleCache;
  readonly shares: Pick<RunShares, "open" | "answers">;
  readonly time: Pick<ServiceTime, "take">;
}

type Refusal = Extract<FetchAnswer, { ok: false }>;

const MAX_SPECIFIER_CHARS = 2_048;
const importSchema = z.strictObject({ specifier: z.string().max(MAX_SPECIFIER_CHARS) });

export const LONG_SPECIFIER: Refusal = {
  ok: false,
  code: "invalid_code",
  message: `an import's specifier is at most ${MAX_SPECIFIER_CHARS} characters`,
};

export class RunImports {
  readonly #job: Pick<RunJob, "account" | "limits">;
  readonly #parts: ImportParts;
  readonly #over: AbortSignal;

  constructor(job: Pick<RunJob, "account" | "limits">, parts: ImportParts, over: AbortSignal) {
    this.#job = job;
    this.#parts = parts;
    this.#over = over;
  }

  /**
   * `args` is untrusted text from a child.
   * @throws EndsRun; Preempted when others needed the memory of a module that the child did not read.
   */
  async serve(args: string, deliver: (answer: FetchAnswer) => Promise<void>): Promise<void> {
    const parsed = importSchema.safeParse(parseJson(args));
    if (!parsed.success) return deliver(LONG_SPECIFIER);
    const { specifier } = parsed.data;
    const refusal = await inScope(this.#job.account, this.#over, async (scope) => {
      const answer = await this.#module(specifier, scope).catch((error: unknown) => this.#refusalOf(error, specifier));
      if (!answer.ok) return answer;
      return Promise.race([deliver(answer), aborted(scope.over)]);
    });
    if (refusal !== undefined) await deliver(refusal);
  }

  async #module(specifier: string, scope: Scope): Promise<FetchAnswer> {
    const { account, limits } = this.#job;
    const { modules, shares, time } = this.#parts;
    const { source, url, integrity } = await modules.get(specifier, {
      account,
      maxBytes: limits.importBytes,
      over: scope.over,
      fetching: (fetch) => this.#inFetchShares(fetch, scope),
      holding: (bytes) => time.take(shares.answers, bytes, scope, account),
    });
    return { ok: true, value: JSON.stringify({ url, integrity }), body: source };
  }

  /** It has its place among the fetches of all runs until it is there, or others need it. */
  #inFetchShares(fetch: (over: AbortSignal) => Promise<Buffer>, scope: Scope): Promise<Buffer> {
    const { account, limits } = this.#job;
    const { shares, time } = this.#parts;
    return inScope(account, scope.over, async (way) => {
      await time.take(shares.open, 1, way, account);
      const fetched = time.take(shares.answers, limits.importBytes, scope, account).then(async (memory) => {
        const source = await fetch(way.over);
        memory.shrink(source.length);
        return source;
      });
      return Promise.race([fetched, aborted(way.over)]);
    });
  }

  #refusalOf(error: unknown, specifier: string): Refusal {
    if (error instanceof FetchFailed && error.code === "too_large") {
      const message = `the module ${specifier} is larger than ${this.#job.limits.importBytes} bytes`;
      throw new EndsRun({ code: "limit_exceeded", message });
    }
    if (error instanceof BadImport || error instanceof FetchFailed)
      return { ok: false, code: "invalid_code", message: error.message };
    throw error;
  }
}
