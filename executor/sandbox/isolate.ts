/**
 * One isolate for one run. The only file that uses isolated-vm, so that another engine could replace it.
 *
 * The guest gets only plain functions (ivm.Callback) closed over by the prelude, strings, numbers and copies of bytes.
 * Never a Reference, an ExternalCopy or anything else of isolated-vm: each would allow an escape.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import ivm from "isolated-vm";
import type { RunErrorCode } from "../../protocol/errors";
import type { Analysis, EthersVersion } from "./analyse";
import { convert } from "./convert";
import type { Setting } from "./guest/prelude";
import { MAX_ERROR_CHARS } from "./types";

export interface GuestEnd {
  response: string;
  /** JSON text: signatures by name, made by the functions of older systems. */
  signatures?: string;
  error?: { code: RunErrorCode; message: string; stack?: string };
}

export interface GuestEvents {
  op(call: number, name: string, args: string, body: Buffer | undefined): void;
  log(text: string): void;
  end(end: GuestEnd): void;
}

export interface GuestRun {
  code: string;
  analysis: Analysis;
  setting: Setting;
  /** Sources of imported modules by specifier. */
  modules: Map<string, string>;
  wallMs: number;
}

/** An action that uses what most actions use. */
const WARM_UP = `async () => (console.log(""), await Actions.signMessage({ pkpId: "", message: "" }))`;
const WARM_UP_MS = 5_000;
/** The name under which a module's `main` is imported, whether it exports it or not. */
const MAIN = "keywright_main";
const ACTION = "action.js";
const MAX_RANDOM_BYTES = 65_536;
/** Code up to this many characters compiles faster than a switch to another thread takes. */
const QUICK_TO_COMPILE = 32_768;

/**
 * A script of the executor, with V8's compiled form cached. Never for guest code: V8 trusts cached data like machine
 * code.
 */
class OwnScript {
  readonly #source: string;
  #cachedData: ivm.ExternalCopy<ArrayBuffer> | undefined;

  constructor(name: OwnScriptName) {
    this.#source = readFileSync(join(__dirname, "guest", `${name}.js`), "utf8");
  }

  run(isolate: ivm.Isolate, context: ivm.Context): ivm.Reference {
    const script = isolate.compileScriptSync(this.#source, { ...ORIGIN, cachedData: this.#cachedData });
    return script.runSync(context, { reference: true }) as ivm.Reference;
  }

  /**
   * Caches the script with all functions that have been called in this isolate: compiling it once more finds them
   * compiled. Only before guest code runs there.
   */
  cache(isolate: ivm.Isolate): void {
    if (this.#cachedData !== undefined) return;
    const script = isolate.compileScriptSync(this.#source, { ...ORIGIN, produceCachedData: true });
    this.#cachedData = (script as { cachedData?: ivm.ExternalCopy<ArrayBuffer> }).cachedData;
  }
}

const ORIGIN = { filename: "keywright:own" };
type OwnScriptName = "prelude" | EthersVersion;
/** Read when the child starts: its later user may not be able to read the files. */
const ownScripts: Record<OwnScriptName, OwnScript> = {
  prelude: new OwnScript("prelude"),
  ethers5: new OwnScript("ethers5"),
  ethers6: new OwnScript("ethers6"),
};

export class Guest {
  readonly #isolate: ivm.Isolate;
  readonly #context: ivm.Context;
  readonly #deliverReference: ivm.Reference;
  readonly #timers = new Set<NodeJS.Timeout>();
  #events: GuestEvents | undefined;
  #hasEnded = false;
  /** Compiling and linking are done: later failures are run-time errors of the action, not invalid code. */
  #isRunning = false;
  /** Of `performance.now`: the engine's own timers use the same clock. */
  #deadline = 0;
  /** Codes of the refusals that were given to the guest, by their message. */
  readonly #refusals = new Map<string, RunErrorCode>();

  /** Ready for a run, with no data of any run: prepared while the child is idle. */
  constructor(
    readonly heapMiB: number,
    readonly ethers: EthersVersion | undefined,
  ) {
    this.#isolate = new ivm.Isolate({ memoryLimit: heapMiB, onCatastrophicError: () => this.#onFatalError() });
    this.#context = this.#isolate.createContextSync();
    const install = ownScripts.prelude.run(this.#isolate, this.#context);
    this.#deliverReference = install.applySync(undefined, this.#hostFunctions(), {
      result: { reference: true },
    }) as ivm.Reference;
    if (ethers) this.#loadLibrary(ethers);
  }

  #loadLibrary(name: EthersVersion): void {
    const library = ownScripts[name].run(this.#isolate, this.#context);
    ownScripts[name].cache(this.#isolate);
    const define =
      "Object.defineProperty(globalThis, 'ethers', { value: $0, writable: false, " +
      "enumerable: false, configurable: true })";
    this.#context.evalClosureSync(define, [library.derefInto({ release: true })]);
  }

  #hostFunctions(): ivm.Callback[] {
    return [
      new ivm.Callback((call: unknown, name: unknown, args: unknown, body: unknown) =>
        this.#onOp(call, name, args, body),
      ),
      new ivm.Callback((text: unknown) => this.#onLog(text)),
      new ivm.Callback((count: unknown) => random(count)),
      new ivm.Callback((...args: unknown[]) => convert(...args)),
      new ivm.Callback((id: unknown, delayMs: unknown) => this.#onTimer(id, delayMs)),
      new ivm.Callback((outcome: unknown, text: unknown, stack: unknown) => this.#onEnd(outcome, text, stack)),
    ];
  }

  async run(job: GuestRun, events: GuestEvents): Promise<void> {
    this.#events = events;
    this.#deadline = performance.now() + job.wallMs;
    // Second time limit: also stops what `timeout` does not cover, such as code after an await.
    this.#startTimer(job.wallMs, () => this.#finish(timedOut()));
    try {
      // Without a time limit, since nothing of the guest runs yet: the engine keeps each limit's timer until it is due.
      this.#deliverReference.applySync(undefined, ["begin", 0, JSON.stringify(job.setting)]);
      if (this.#hasEnded) return;
      const { main, topLevel } = job.analysis.isModule
        ? await this.#evaluateModule(job)
        : await this.#evaluateScript(job);
      this.#deliver("finish", 0, main?.derefInto({ release: true }), topLevel?.derefInto({ release: true }));
    } catch (error) {
      this.#finish(this.#failureOf(error));
    }
  }

  /** The keyholder's answer to an op: JSON text, and the bytes of a fetched body, if any. */
  answer(call: number, ok: boolean, text: string, body: Buffer | undefined): void {
    if (!ok) this.#noteRefusal(text);
    const bytes = body && new ivm.ExternalCopy(copyOf(body)).copyInto({ release: true, transferIn: true });
    this.#deliver("answer", call, ok, text, bytes);
  }

  #noteRefusal(text: string): void {
    const { code, message } = JSON.parse(text) as { code: string; message: string };
    if (isHostCode(code)) this.#refusals.set(message, code);
  }

  /** Runs a dummy action, so that V8 caches the compiled prelude; this isolate is then discarded. */
  warmUp(): void {
    const setting: Setting = {
      params: {},
      imports: [],
      paramsAsGlobals: [],
      rpcUrls: {},
      responseBytes: 64,
      logsBytes: 64,
    };
    const main = this.#isolate.compileScriptSync(WARM_UP, ORIGIN).runSync(this.#context, { reference: true });
    this.#deadline = performance.now() + WARM_UP_MS;
    this.#deliver("begin", 0, JSON.stringify(setting));
    this.#deliver("finish", 0, (main as ivm.Reference).derefInto({ release: true }));
    this.#deliver("answer", 1, true, `""`, undefined);
    ownScripts.prelude.cache(this.#isolate);
    this.dispose();
  }

  dispose(): void {
    this.#hasEnded = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    if (!this.#isolate.isDisposed) this.#isolate.dispose();
  }

  /** The value of a script is that of its last statement, here `main`. */
  async #evaluateScript({ code, analysis }: GuestRun): Promise<{ main?: ivm.Reference; topLevel?: ivm.Reference }> {
    const hasMain = analysis.entry === "main";
    const source = analysis.awaits ? awaiting(code, hasMain) : hasMain ? `${code}\n;main` : code;
    const options = { filename: ACTION };
    const script =
      source.length < QUICK_TO_COMPILE
        ? this.#isolate.compileScriptSync(source, options)
        : await this.#isolate.compileScript(source, options);
    this.#isRunning = true;
    const value = script.runSync(this.#context, { reference: true, timeout: this.#left() }) as ivm.Reference;
    return hasMain ? { main: value } : { topLevel: value };
  }

  async #evaluateModule({
    code,
    analysis,
    modules,
  }: GuestRun): Promise<{ main?: ivm.Reference; topLevel?: ivm.Reference }> {
    const source = analysis.entry === "main" ? `${code}\n;export { main as ${MAIN} };` : code;
    const action = await this.#isolate.compileModule(source, { filename: ACTION });
    const compiled = new Map([[ACTION, action]]);
    const entry = this.#isolate.compileModuleSync(entryModule(analysis.entry), ORIGIN);
    await entry.instantiate(this.#context, (specifier) => this.#resolve(specifier, modules, compiled));
    this.#isRunning = true;
    // On this thread, as scripts: the run is billed for what the kernel counts of it.
    entry.evaluateSync({ timeout: this.#left() });
    return { main: entry.namespace.getSync("run", { reference: true }) as ivm.Reference };
  }

  async #resolve(
    specifier: string,
    modules: Map<string, string>,
    compiled: Map<string, ivm.Module>,
  ): Promise<ivm.Module> {
    const known = compiled.get(specifier);
    if (known !== undefined) return known;
    const source = modules.get(specifier);
    if (source === undefined) throw new Error(`the import of ${specifier} was not resolved`);
    const module = await this.#isolate.compileModule(source, { filename: specifier });
    compiled.set(specifier, module);
    return module;
  }

  /**
   * On this thread, which is faster than a switch to another and back. If the engine's own time limit fails, the
   * keyholder's ends this process.
   */
  #deliver(...args: unknown[]): void {
    if (this.#hasEnded) return;
    try {
      this.#deliverReference.applySync(undefined, args, { timeout: this.#left() });
    } catch (error) {
      this.#finish(this.#failureOf(error));
    }
  }

  #left(): number {
    return Math.max(1, Math.ceil(this.#deadline - performance.now()));
  }

  #onOp(call: unknown, name: unknown, args: unknown, body: unknown): void {
    if (this.#hasEnded || typeof call !== "number" || typeof name !== "string" || typeof args !== "string") return;
    this.#events?.op(call, name, args, body instanceof ArrayBuffer ? Buffer.from(body) : undefined);
  }

  #onLog(text: unknown): void {
    if (!this.#hasEnded && typeof text === "string") this.#events?.log(text);
  }

  #onTimer(id: unknown, delayMs: unknown): void {
    if (this.#hasEnded || typeof id !== "number" || typeof delayMs !== "number") return;
    this.#startTimer(delayMs, () => this.#deliver("timer", id));
  }

  #startTimer(delayMs: number, callback: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      callback();
    }, delayMs);
    this.#timers.add(timer);
  }

  #onEnd(outcome: unknown, text: unknown, stack: unknown): void {
    if (typeof outcome !== "string" || typeof text !== "string") return;
    if (outcome === "ok")
      return this.#finish({ response: text, ...(typeof stack === "string" && { signatures: stack }) });
    if (outcome === "response_too_large")
      return this.#finish(failure(outcome, `the response has ${text} characters of JSON`));
    if (outcome === "logs_too_large")
      return this.#finish(failure(outcome, `one line of the logs has ${text} characters`));
    const code = isHostCode(outcome) ? outcome : "threw";
    this.#finish(failure(code, text, typeof stack === "string" ? ownFrames(stack) : undefined));
  }

  #finish(end: GuestEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const events = this.#events;
    // Deferred: during a call of the guest the isolate is entered and must not be disposed.
    setImmediate(() => {
      events?.end(end);
      this.dispose();
    });
  }

  #onFatalError(): void {
    // The engine is unusable; the keyholder replaces the child.
    this.#events?.end(failure("out_of_memory", "the engine ran out of memory"));
    process.exit(1);
  }

  #failureOf(error: unknown): GuestEnd {
    if (this.#isolate.isDisposed)
      return failure("out_of_memory", `the action used more than its heap of ${this.heapMiB} MiB`);
    if (error instanceof Error && error.message.includes("was not an instance of `Error`"))
      return failure("threw", "the action threw something that is not an Error");
    if (!(error instanceof Error)) return failure("threw", String(error));
    // Before that, it is an error of the guest that says so.
    if (error.message === "Script execution timed out." && performance.now() >= this.#deadline) return timedOut();
    if (!this.#isRunning) return failure("invalid_code", error.message);
    const name = error.name === "Error" ? "" : `${error.name}: `;
    // Nothing waited for the op that was refused when its refusal arrived: it is told by its message.
    const code = this.#refusals.get(error.message) ?? "threw";
    return failure(code, `${name}${error.message}`, ownFrames(error.stack ?? ""));
  }
}

const failure = (code: RunErrorCode, message: string, stack?: string): GuestEnd => ({
  response: "null",
  error: { code, message, ...(stack && { stack }) },
});
const HOST_CODES = ["permission_denied", "limit_exceeded", "budget_exceeded"] as const;
const isHostCode = (text: string): text is (typeof HOST_CODES)[number] =>
  (HOST_CODES as readonly string[]).includes(text);
const timedOut = (): GuestEnd => failure("timed_out", "the action ran longer than its time limit");

function random(count: unknown): ArrayBuffer {
  const size = typeof count === "number" && count >= 0 ? Math.min(Math.floor(count), MAX_RANDOM_BYTES) : 0;
  return copyOf(randomBytes(size));
}

function copyOf(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}

const FOREIGN_FRAME = /^\s+at .*(keywright:own|<isolated-vm|node:|\(\/|at \/)/;

/** Only the guest's frames: none of the prelude, a library or the host. */
function ownFrames(stack: string): string {
  const lines = stack.slice(0, MAX_ERROR_CHARS).split("\n");
  return lines.filter((line) => !FOREIGN_FRAME.test(line)).join("\n");
}

/**
 * Imports the action and calls its entry. A module that awaits at top level, or imports one that does, has not been
 * evaluated when the engine returns: the call waits until it has.
 */
function entryModule(entry: Analysis["entry"]): string {
  const name = { none: "", main: `{ ${MAIN} as main } from `, default: "{ default as main } from " }[entry];
  return `import ${name}"${ACTION}";
    var isEvaluated, resume;
    export async function run(params) {
      if (!isEvaluated) await new Promise((resolve) => { resume = resolve; });
      ${name && 'return typeof main === "function" ? main(params) : undefined;'}
    }
    isEvaluated = true;
    if (resume) resume();`;
}

/** Code that awaits at top level as an async function, on the same lines: its promise, or a `main` that awaits it. */
function awaiting(code: string, hasMain: boolean): string {
  if (!hasMain) return `(async () => {${code}\n})()`;
  const main = `((main) => typeof main === "function" ? main(params) : undefined)(await code)`;
  return `((code) => async (params) => ${main})((async () => {${code}\n;return main})())`;
}
