/**
 * One run on the keyholder's side: serves its ops, counts them, collects its logs, decides its outcome. Does not trust
 * the child's messages.
 */
import { StringDecoder } from "node:string_decoder";
import { setImmediate } from "node:timers/promises";
import { inTurn } from "../loop";
import { inScope, Preempted } from "../../protocol/fairShare";
import { aborted } from "../../protocol/within";
import {
  OP_MEMORY_PER_CHAR,
  SHORT_ARGS_CHARS,
  KeyInRequest,
  RunFetches,
  type Deliver,
  type FetchParts,
} from "./fetches";
import type { ModuleCache } from "./imports";
import { residentCapBytes } from "./launch";
import type { FromChild } from "./messages";
import { LONG_SPECIFIER, RunImports } from "./runImports";
import { ServiceTime } from "./serviceTime";
import { Tripwire } from "./tripwire";
import { EndsRun, RunCancelled, type RpcUrls, type RunError, type RunJob, type RunOutcome } from "./types";
import type { Room, Worker, WorkerExit } from "./worker";
import { defined } from "../../protocol/defined";
import { parseJson } from "../../protocol/json";
import { isOpName, opRow } from "../../protocol/ops";

/** As the relayer writes it, and whoever checks it: receipts are of that. Undefined for what is no JSON. */
function rewritten(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function isObjectText(text: string): boolean {
  const value = parseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Third time limit: the grace period before the keyholder kills a child whose run exceeded its limit. */
const GRACE_MS = 250;
const MEMORY_CHECK_MS = 50;
/** What a child may leave unread of a run's answers, which nothing counts once the run is over. */
const MAX_UNREAD_BYTES = 131_072;
const ZERO_COUNTS = { fetches: 0, imports: 0, keyOps: 0, privateKeyReads: 0 };
const MAX_ARGS_CHARS = 1_048_576;
/** Of one character, as JavaScript counts them. */
const MAX_UTF8_BYTES = 3;

export interface SessionParts extends FetchParts {
  modules: ModuleCache;
  rpcUrls?: RpcUrls;
  logger: { error(facts: object, message: string): void };
  /** Called whenever the run asks for something: until it computes again it leaves its place to others. */
  onWaits: () => void;
  /** Called whenever a key operation was answered. */
  onServed: () => void;
}

type Op = Extract<FromChild, { type: "op" }> & { readonly args: string };

/** An answer for the guest: text, of a fetch or an import also bytes, or an error that it can catch. */
type Answer = { ok: true; value: string; body?: Buffer } | { ok: false; code: string; message: string };

export class RunSession {
  readonly outcome: Promise<RunOutcome>;
  #settle!: { resolve(outcome: RunOutcome): void; reject(error: Error): void };
  #isOver = false;
  #startedAt = 0;
  readonly #serviceTime: ServiceTime;
  readonly #logs: string[] = [];
  #logsBytes = 0;
  readonly #counts = { ...ZERO_COUNTS };
  readonly #tripwire = new Tripwire();
  readonly #stopped = new AbortController();
  readonly #timers: NodeJS.Timeout[] = [];
  #parsing: NodeJS.Timeout | undefined;
  #isParsed = false;
  readonly #fetches: RunFetches;
  readonly #imports: RunImports;
  #opsAdmitted: Promise<unknown> = Promise.resolve();
  readonly #onAbort = () => this.#cancel();
  readonly #run: number;
  readonly #job: RunJob;
  readonly #worker: Worker;
  readonly #parts: SessionParts;

  constructor(run: number, job: RunJob, worker: Worker, parts: SessionParts) {
    this.#run = run;
    this.#job = job;
    this.#worker = worker;
    this.#parts = parts;
    this.outcome = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    this.#serviceTime = new ServiceTime(() => worker.scheduled());
    const timed = { ...parts, time: this.#serviceTime };
    this.#fetches = new RunFetches(run, job, timed, this.#tripwire, this.#stopped.signal);
    this.#imports = new RunImports(job, timed, this.#stopped.signal);
  }

  start(): void {
    const [job, worker] = [this.#job, this.#worker];
    worker.events = {
      onMessage: (message, payload) => this.#onMessage(message, payload),
      onExit: (exit) => this.#onExit(exit),
      roomFor: (bytes) => this.#roomFor(bytes),
      largeAdmitted: () => Promise.all([this.#fetches.bodiesAdmitted, this.#opsAdmitted]),
    };
    job.signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#startedAt = performance.now();
    this.#timers.push(
      setTimeout(
        () => this.#endByForce({ code: "timed_out", message: "the action ran longer than its time limit" }),
        job.limits.wallMs + GRACE_MS,
      ),
    );
    if (!worker.hasParsed) this.#limitParsing(job.limits.parseMs);
    this.#timers.push(setInterval(() => this.#checkMemory(), MEMORY_CHECK_MS));
    const { rpcUrls } = this.#parts;
    worker.send(
      { type: "run", run: this.#run, params: job.params.toString(), limits: job.limits, ...defined({ rpcUrls }) },
      job.code.send(),
      () => job.code.drop(),
    );
  }

  #limitParsing(parseMs: number): void {
    const message = `the code took longer than ${parseMs} ms to parse`;
    this.#parsing = setTimeout(() => this.#endByForce({ code: "limit_exceeded", message }), parseMs);
    this.#timers.push(this.#parsing);
  }

  #onParsed(isCached: boolean): void {
    if (this.#isParsed) return this.#worker.countStray();
    this.#isParsed = true;
    clearTimeout(this.#parsing);
    this.#worker.hasParsed ||= isCached;
  }

  /** Ends the run because the pool is closing. */
  abandon(message: string): void {
    this.#finish(
      { response: "null", error: { code: "sandbox_crashed", message }, fault: "service" },
      "the pool closed",
    );
  }

  /** Ends the run because others have waited for what its account holds most of. */
  preempt(): void {
    this.#endByForce({
      code: "preempted",
      message: "other accounts had waited for what this account held most of; make fewer or shorter runs at once",
    });
  }

  /** Ends the run because the children together use too much memory and this one uses most. */
  endForMemory(): void {
    this.#endByForce({
      code: "out_of_memory",
      message: "the service's memory for actions was used up, and the action had more than its share of it",
    });
  }

  #cancel(): void {
    if (this.#isOver) return;
    this.#cleanUp("its run was cancelled");
    this.#settle.reject(new RunCancelled());
  }

  #onMessage(message: FromChild, payload: Buffer): void {
    if (this.#isOver || !("run" in message) || message.run !== this.#run) return this.#worker.countStray();
    if (message.type === "parsed") this.#onParsed(message.isCached);
    if (message.type === "log") this.#onLog(payload);
    if (message.type === "op") void this.#onOp({ ...message, args: message.args ?? argsIn(payload) }, payload);
    if (message.type === "end") this.#onEnd(message.error, message.signatures, payload);
  }

  #onLog(text: Buffer): void {
    if (text.length === 0) return this.#worker.countStray();
    const remaining = this.#job.limits.logsBytes - this.#logsBytes;
    const isTooLong = text.length > remaining;
    // A character cut in half is dropped.
    this.#logs.push(isTooLong ? new StringDecoder().write(text.subarray(0, remaining)) : text.toString());
    this.#logsBytes += text.length;
    if (isTooLong)
      this.#endByForce({
        code: "logs_too_large",
        message: `the logs are larger than ${this.#job.limits.logsBytes} bytes`,
      });
  }

  #onEnd(error: RunError | undefined, signatures: string | undefined, payload: Buffer): void {
    const { responseBytes } = this.#job.limits;
    if (error) return this.#finish({ response: "null", error }, isOrderly(error) ? undefined : error.code);
    const isTooLarge = (bytes: number): boolean => bytes + Buffer.byteLength(signatures ?? "") > responseBytes;
    const tooLarge = {
      code: "response_too_large",
      message: `the response is larger than ${responseBytes} bytes`,
    } as const;
    if (isTooLarge(payload.length)) return this.#endByForce(tooLarge);
    const response = rewritten(payload.toString("utf8"));
    if (response === undefined || (signatures !== undefined && !isObjectText(signatures)))
      return this.#endByForce({ code: "sandbox_crashed", message: "the sandbox gave a response that is not JSON" });
    // 1e20 is 21 digits.
    if (isTooLarge(Buffer.byteLength(response))) return this.#endByForce(tooLarge);
    this.#finish({ response, ...defined({ signatures }) });
  }

  async #onOp(op: Op, payload: Buffer): Promise<void> {
    this.#parts.onWaits();
    const onServed = isOpName(op.name) ? this.#serviceTime.begin() : undefined;
    try {
      // How long the child takes to read it is its own affair.
      const deliver = (answer: Answer): Promise<void> => (onServed?.(), this.#deliver(op, answer));
      if (op.name === "fetch") await this.#serveFetch(op, payload, deliver);
      else if (op.args.length > SHORT_ARGS_CHARS) await this.#serveLarge(op, deliver);
      else {
        if (op.name === "import") await this.#serveImport(op.args, deliver);
        else await deliver(await this.#serve(op));
        this.#parts.onServed();
      }
    } catch (error) {
      if (this.#isOver) return;
      if (error instanceof EndsRun) return this.#endByForce(error.error);
      if (error instanceof Preempted) return this.preempt();
      if (error instanceof KeyInRequest) return this.#endByForce(EXPOSED);
      this.#parts.logger.error({ op: op.name, err: error }, "serving an op failed");
      const message = `the service failed while serving ${op.name}`;
      this.#finish({ response: "null", error: { code: "sandbox_crashed", message }, fault: "service" }, "an op failed");
    } finally {
      onServed?.();
    }
  }

  /** Resolves when the answer was written to the child or never will be. */
  #deliver({ call }: Op, answer: Answer): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    return new Promise((sent) => {
      const head = { type: "answer", run: this.#run, call } as const;
      if (!answer.ok) return this.#worker.send({ ...head, ...answer }, undefined, sent);
      const { value, body } = answer;
      if (body === undefined) this.#worker.send({ ...head, ok: true }, Buffer.from(value), sent);
      else this.#worker.send({ ...head, ok: true, value }, body, sent);
    });
  }

  /** A message that the child does not finish sending gives way to others', with its run. */
  #roomFor(bytes: number): Promise<Room> {
    this.#parts.onWaits();
    const { frames } = this.#parts.shares;
    const { account } = this.#job;
    return new Promise((given, refused) => {
      const held = inScope(account, this.#stopped.signal, async (scope) => {
        const grant = await this.#serviceTime.take(frames, bytes, scope, account);
        await new Promise<void>((leave, over) => {
          given({ arrived: () => grant.keep(), leave });
          aborted(scope.over).catch(over);
        });
      });
      held.catch((error: unknown) => {
        if (error instanceof Preempted) this.preempt();
        refused(error as Error);
      });
    });
  }

  /** Its memory is shared with all runs; until it is granted no further large message of the child is read. */
  async #serveLarge(op: Op, deliver: (answer: Answer) => Promise<void>): Promise<void> {
    requireSmall(op);
    await inScope(this.#job.account, this.#stopped.signal, async (scope) => {
      const admitted = scope.take(this.#parts.shares.ops, op.args.length * OP_MEMORY_PER_CHAR);
      this.#opsAdmitted = Promise.allSettled([this.#opsAdmitted, admitted]);
      const memory = await admitted;
      // Delivered in a turn of the loop of its own: either may take a while.
      const delivered = this.#serve(op).then(async (answer) => {
        memory?.shrink(memoryOf(answer));
        await setImmediate();
        await deliver(answer);
      });
      await Promise.race([delivered, aborted(scope.over)]);
    });
  }

  async #serveFetch(op: Op, payload: Buffer, deliver: Deliver): Promise<void> {
    requireSmall(op);
    this.#count("fetches", "fetches");
    await this.#fetches.serve(op.args, payload, deliver);
  }

  async #serve(op: Op): Promise<Answer> {
    requireSmall(op);
    // Its arguments are longer than a specifier can make them.
    if (op.name === "import") return this.#beginImport().then(() => LONG_SPECIFIER);
    this.#count("keyOps", "key and signature operations");
    if (!isOpName(op.name)) return { ok: false, code: "unknown_op", message: `there is no op ${op.name}` };
    if (opRow(op.name).exposesKey) this.#count("privateKeyReads", "private key reads");
    const answer = await this.#job.ops({ name: op.name, args: op.args, over: this.#stopped.signal });
    if (!answer.ok) return answer;
    for (const key of answer.exposes ?? []) this.#tripwire.watch(key);
    return { ok: true, value: answer.value };
  }

  async #serveImport(args: string, deliver: (answer: Answer) => Promise<void>): Promise<void> {
    await this.#beginImport();
    await this.#imports.serve(args, deliver);
  }

  async #beginImport(): Promise<void> {
    this.#count("imports", "imports");
    await this.#serviceTime.unbilled(this.#job.permitted?.());
  }

  #count(what: keyof typeof ZERO_COUNTS, words: string): void {
    const most = this.#job.limits[what];
    if (++this.#counts[what] > most)
      throw new EndsRun({ code: "limit_exceeded", message: `the action made more than ${most} ${words}` });
  }

  #checkMemory(): void {
    if (this.#worker.residentBytes() <= residentCapBytes(this.#job.limits.heapMiB)) return;
    this.#endByForce({ code: "out_of_memory", message: "the action used more memory than its sandbox has" });
  }

  #onExit(exit: WorkerExit): void {
    if (this.#isOver) return;
    this.#finish({ response: "null", ...causeOf(exit) }, "it ended");
  }

  #endByForce(error: RunError): void {
    this.#finish({ response: "null", error }, error.code);
  }

  /** Settles the run. `killFor` also ends the child: after anything abnormal it is not reused. */
  #finish(result: Pick<RunOutcome, "response" | "signatures" | "error" | "fault">, killFor?: string): void {
    if (this.#isOver) return;
    const durationMs = Math.max(0, performance.now() - this.#startedAt - this.#serviceTime.total());
    this.#cleanUp(killFor ?? (this.#worker.unread > MAX_UNREAD_BYTES ? "left its answers unread" : undefined));
    const logs = this.#logs.join("");
    void this.#settleUnexposed({ ...result, logs, durationMs });
  }

  async #settleUnexposed(outcome: RunOutcome): Promise<void> {
    const { response, signatures, logs, error, durationMs } = outcome;
    const texts = [response, signatures, logs, error?.message, error?.stack];
    const isExposed =
      error === EXPOSED || (await this.#tripwire.isIn(texts, (search) => inTurn(this.#job.account, search)));
    this.#settle.resolve(isExposed ? { response: "null", logs: "", error: EXPOSED, durationMs } : outcome);
  }

  #cleanUp(killFor: string | undefined): void {
    this.#isOver = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#job.signal?.removeEventListener("abort", this.#onAbort);
    this.#stopped.abort(OVER);
    this.#worker.events = undefined;
    if (killFor !== undefined) this.#worker.kill(killFor);
  }
}

/** Of longer ones as much as shows that they are too long. */
const argsIn = (payload: Buffer): string => payload.toString("utf8", 0, MAX_UTF8_BYTES * MAX_ARGS_CHARS + 1);

/** As text and as bytes. */
const memoryOf = (answer: Answer): number => (answer.ok ? 2 * answer.value.length : 1);

function requireSmall({ name, args }: Op): void {
  if (args.length > MAX_ARGS_CHARS)
    throw new EndsRun({ code: "limit_exceeded", message: `the arguments of ${name} are larger than 1 MiB` });
}

/** Shared: an abort without a reason creates a new error with a stack each time. */
const OVER = new Error("the run is over");

const EXPOSED: RunError = {
  code: "key_exposed",
  message: "the action's output carried a private key it had been given; the output is withheld",
};

/** Errors after which the child can be reused. */
const isOrderly = ({ code }: RunError): boolean =>
  code === "threw" || code === "invalid_code" || code === "permission_denied" || code === "limit_exceeded";

const BY_ENGINE = new Set<NodeJS.Signals>(["SIGTRAP", "SIGABRT", "SIGILL", "SIGSEGV", "SIGBUS", "SIGFPE", "SIGSYS"]);

/**
 * The cause of an unexpected exit. Only a signal that neither the engine nor the keyholder sent came from outside, or
 * the end of the process that starts children: whatever else ends a child was caused by what it ran.
 */
function causeOf({ code, signal, stderr, killReason, wasNearCap }: WorkerExit): Pick<RunOutcome, "error" | "fault"> {
  const byEngine = signal !== null && BY_ENGINE.has(signal);
  // Libraries of the engine that get no memory exit without a message.
  const ranOut = /out of memory|allocation failed|bad_alloc/i.test(stderr) || (byEngine && wasNearCap);
  if (ranOut) return { error: { code: "out_of_memory", message: "the action used more memory than its sandbox has" } };
  if (byEngine) {
    const isTooLarge = /invalid (size|array|string|table)/i.test(stderr);
    const why = isTooLarge
      ? "a single array or string was larger than the engine can hold"
      : "the engine gave up on it";
    return { error: { code: "sandbox_crashed", message: `the action ended its sandbox: ${why}` } };
  }
  if (killReason !== undefined)
    return { error: { code: "sandbox_crashed", message: "the action's sandbox broke its rules and was ended" } };
  if (code !== null) return { error: { code: "sandbox_crashed", message: "the action made its sandbox fail" } };
  return {
    error: { code: "sandbox_crashed", message: "the sandbox ended for a reason outside the action" },
    fault: "service",
  };
}
