/** The keyholder's client of the fetcher process: starts it, sends requests, restarts it when it exits. */
import type { Duplex } from "node:stream";
import { dirname } from "node:path";
import type { Logger } from "pino";
import { defined } from "../../protocol/defined";
import { built } from "../built";
import { readFrames, writeFrame, type Frame } from "../frames";
import { setPriorities } from "../confinement/priority";
import { detectConfinement, startConfined, type Confined } from "../confinement/confine";
import { redactedStderr } from "../confinement/redactedStderr";
import { fromFetcherSchema, type Configuration, type FromFetcher, type ToFetcher } from "./messages";
import {
  FetchFailed,
  type Exchanged,
  type Fetcher,
  type GuestFetchOptions,
  type GuestRequest,
  type WebhookFetcher,
} from "./types";

export type FetcherOptions = { readonly logger: Logger } & Readonly<Partial<Configuration>>;

export interface StartedFetcher extends Fetcher, WebhookFetcher {
  /** Barriers that do not hold, one sentence each. */
  readonly missing: readonly string[];
}

const DEFAULTS = { gateways: [], jwksUrls: [], allowHosts: [], webhookAllowHosts: [], ports: [80, 443] };
const PROGRAM = built("fetcher/main.js");
const RESTART_MS = 200;
/** As long as a child of the sandbox may take. */
const READY_MS = 30_000;
const FOLDER = dirname(PROGRAM);
const NODE_OPTIONS = ["--disallow-code-generation-from-strings"];
/** Node's permission model, in addition to the kernel's restrictions. */
const PERMISSION_MODEL = ["--permission", `--allow-fs-read=${FOLDER}/*`, "--allow-fs-read=/etc/hosts"];
/** More than all bodies that may be under way need, with the code ranges that V8 reserves. */
const DATA_BYTES = 2 * 2 ** 30;
/** Below the processes that serve all accounts, above the children. */
const PRIORITY = { niceness: 5, outOfMemoryScore: 500 };

type Reply = Partial<Exchanged> & Pick<Exchanged, "body">;
type Ask = Exclude<ToFetcher, { type: "configure" } | { type: "cancel" } | { type: "grown" }>;

interface Call {
  resolve(reply: Reply): void;
  reject(error: Error): void;
  readonly grow?: (() => Promise<void>) | undefined;
}
type WithoutCall<T> = T extends Ask ? Omit<T, "call"> : never;

/** Starts the fetcher; resolves when it is ready and its barriers have been tested. */
export async function createFetcher(options: FetcherOptions): Promise<StartedFetcher> {
  await detectConfinement();
  const client = new FetcherClient(options);
  const [missing] = await Promise.all([missingConfinement(options), client.start()]).catch(async (error: unknown) => {
    await client.close();
    throw error;
  });
  return Object.assign(client, { missing });
}

/**
 * Tested by a separate process: in the fetcher Node's permission model would refuse the attempts before the kernel sees
 * them.
 */
async function missingConfinement(options: FetcherOptions): Promise<readonly string[]> {
  const probe = new FetcherClient(options, { isProbe: true });
  try {
    return await probe.start();
  } finally {
    await probe.close();
  }
}

class FetcherClient implements Fetcher, WebhookFetcher {
  #confined: Confined | undefined;
  #channel: Duplex | undefined;
  readonly #calls = new Map<number, Call>();
  #nextCall = 1;
  #isClosing = false;
  #restart: NodeJS.Timeout | undefined;
  #onReady: ((missing: string[]) => void) | undefined;
  readonly #options: FetcherOptions;
  readonly #role: { isProbe?: boolean };

  constructor(options: FetcherOptions, role: { isProbe?: boolean } = {}) {
    this.#options = options;
    this.#role = role;
  }

  /** Resolves to the barriers that a probe found missing. */
  async start(): Promise<string[]> {
    const permissions = this.#role.isProbe ? [] : PERMISSION_MODEL;
    const confined = startConfined([...permissions, ...NODE_OPTIONS, PROGRAM], {
      filter: "fetcher",
      withoutNetwork: false,
      reads: [FOLDER],
      dataBytes: DATA_BYTES,
      priority: PRIORITY,
    });
    const { process: child, channel } = confined;
    this.#confined = confined;
    this.#channel = channel;
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-8_192);
      this.#options.logger.error({ stderr: redactedStderr(text) }, "the fetcher wrote to standard error");
    });
    channel.on("error", () => undefined);
    const ended = new Promise<never>((_resolve, reject) => {
      child.once("error", (error) => reject(new Error(`the fetcher cannot be started: ${error.message}`)));
      child.once("close", (code) =>
        reject(
          new Error(`the fetcher ended before it was ready (code ${code}): ${redactedStderr(stderr) || "no output"}`),
        ),
      );
    });
    child.once("close", () => this.#onEnd());
    readFrames(
      channel,
      (frame) => this.#onFrame(frame),
      () => confined.kill(),
    );
    const ready = new Promise<string[]>((resolve) => (this.#onReady = resolve));
    this.#write({ type: "configure", configuration: this.#configuration() });
    const timer = setTimeout(() => confined.kill(), READY_MS);
    const missing = await Promise.race([ready, ended]).finally(() => clearTimeout(timer));
    setPriorities(await confined.programId(), PRIORITY);
    return missing;
  }

  async fetchGuest(request: GuestRequest, body: Buffer, options: GuestFetchOptions = {}): Promise<Exchanged> {
    const reply = await this.#ask({ type: "guest", request, ...ofRun(options) }, body, options);
    if (!reply.response) throw new FetchFailed("failed", "the fetcher gave no response");
    return { response: reply.response, body: reply.body };
  }

  async checkGuest(url: string, options: GuestFetchOptions = {}): Promise<void> {
    await this.#ask({ type: "check", url, ...ofRun(options) }, undefined, options);
  }

  async fetchWebhook(request: GuestRequest, body: Buffer, signal?: AbortSignal): Promise<Exchanged> {
    const message = { type: "guest", request: { ...request, cut: true }, ...ofRun({}), isWebhook: true } as const;
    const reply = await this.#ask(message, body, signal === undefined ? {} : { signal });
    if (!reply.response) throw new FetchFailed("failed", "the fetcher gave no response");
    return { response: reply.response, body: reply.body };
  }

  async checkWebhook(url: string): Promise<void> {
    await this.#ask({ type: "check", url, ...ofRun({}), isWebhook: true });
  }

  async fetchModule(url: string, maxBytes: number, options: { signal?: AbortSignal } = {}): Promise<Buffer> {
    return (await this.#ask({ type: "module", url, maxBytes }, undefined, options)).body;
  }

  async fetchCode(cid: string, maxBytes: number, options: { signal?: AbortSignal } = {}): Promise<Buffer> {
    return (await this.#ask({ type: "code", cid, maxBytes }, undefined, options)).body;
  }

  async fetchJwks(url: string): Promise<string> {
    return (await this.#ask({ type: "jwks", url })).body.toString("utf8");
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const child = this.#confined?.process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const closed = new Promise((resolve) => child.once("close", resolve));
    this.#confined?.kill();
    // Killing the wrapper may leave a program that is still starting; closing its channel ends it.
    this.#channel?.destroy();
    await closed;
  }

  #configuration(): Configuration {
    const { logger: _, secretPaths = [], ...given } = this.#options;
    return { ...DEFAULTS, ...defined(given), ...(this.#role.isProbe && { secretPaths }) };
  }

  #ask(message: WithoutCall<Ask>, body?: Buffer, { signal, grow }: GuestFetchOptions = {}): Promise<Reply> {
    const call = this.#nextCall++;
    return new Promise((resolve, reject) => {
      if (!this.#channel || this.#isClosing)
        return reject(new FetchFailed("unavailable", "the fetcher is not running"));
      if (signal?.aborted) return reject(new FetchFailed("failed", "the fetch was cancelled"));
      const onAbort = () => this.#write({ type: "cancel", call });
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          signal?.removeEventListener("abort", onAbort);
          settle(value);
        };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#calls.set(call, { resolve: settled(resolve), reject: settled(reject), grow });
      this.#write({ ...message, call } as Ask, body);
    });
  }

  #write(message: ToFetcher, payload?: Buffer): void {
    if (this.#channel) writeFrame(this.#channel, message, payload);
  }

  #onFrame({ header, payload }: Frame): void {
    const parsed = fromFetcherSchema.safeParse(header);
    if (!parsed.success) return void this.#confined?.kill();
    this.#onMessage(parsed.data, payload);
  }

  #onMessage(message: FromFetcher, payload: Buffer): void {
    if (message.type === "ready") return this.#onReady?.(message.missing);
    if (message.type === "grow") return void this.#grow(message.call);
    const waiting = this.#calls.get(message.call);
    this.#calls.delete(message.call);
    if (message.type === "done") waiting?.resolve({ response: message.response, body: payload });
    else waiting?.reject(new FetchFailed(message.code, message.message));
  }

  async #grow(call: number): Promise<void> {
    // A failure ends the call through its signal.
    await this.#calls
      .get(call)
      ?.grow?.()
      .catch(() => undefined);
    this.#write({ type: "grown", call });
  }

  #onEnd(): void {
    this.#channel = undefined;
    for (const { reject } of this.#calls.values())
      reject(new FetchFailed("unavailable", "the fetcher ended; try again"));
    this.#calls.clear();
    if (this.#isClosing || this.#role.isProbe) return;
    this.#options.logger.error("the fetcher ended and is started again");
    this.#startSoon();
  }

  /** Again and again: without memory for a process there is none that could end. */
  #startSoon(): void {
    this.#restart ??= setTimeout(() => {
      this.#restart = undefined;
      if (this.#isClosing) return;
      this.start().catch((error: unknown) => {
        this.#options.logger.error({ err: error }, "the fetcher cannot be started");
        this.#startSoon();
      });
    }, RESTART_MS).unref();
  }
}

/** Calls outside a run have no limit of name lookups. */
const ofRun = ({ run = -1, lookups = Number.MAX_SAFE_INTEGER, account = "" }: GuestFetchOptions) => ({
  run,
  lookups,
  account,
});
