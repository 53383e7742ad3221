/** The keyholder's handle on the fetcher process: starts it, asks it, starts it again when it has ended. */
import { spawn, type ChildProcess } from "node:child_process";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { built } from "../built";
import { confine } from "../confine";
import { readFrames, writeFrame, type Frame } from "../frames";
import { fromFetcherSchema, type Configuration, type FromFetcher, type ToFetcher } from "./messages";
import { FetchFailed, type Fetcher, type GuestFetchOptions, type GuestRequest, type GuestResponse } from "./types";

export interface FetcherOptions {
  logger: Logger;
  /** Imported modules are fetched below this URL. */
  moduleOrigin?: string;
  /** Trustless gateways for code by CID, tried in order. */
  gateways?: readonly string[];
  /** A Kubo RPC for code by CID, tried after the gateways. */
  kuboRpcUrl?: string;
  /** The only URLs fetchJwks fetches. */
  jwksUrls?: readonly string[];
  /** Hosts, or host:port, that guests may reach whatever their address and port. */
  allowHosts?: readonly string[];
  /** Ports guests may reach; default 80 and 443. */
  ports?: readonly number[];
  /** Name servers for guests' fetches, as address or address:port; default the system's. */
  dnsServers?: readonly string[];
  /** The user the fetcher becomes, when started by root. */
  uid?: number;
}

const PROGRAM = built("fetcher/main.js");
const RESTART_MS = 200;

type Reply = { response?: GuestResponse; body: Buffer };
type Ask = Exclude<ToFetcher, { type: "configure" } | { type: "cancel" } | { type: "grown" }>;

interface Call {
  resolve(reply: Reply): void;
  reject(error: Error): void;
  readonly grow?: (() => Promise<void>) | undefined;
}
type WithoutCall<T> = T extends Ask ? Omit<T, "call"> : never;

/** Starts the fetcher; resolves when it is ready. */
export async function createFetcher(options: FetcherOptions): Promise<Fetcher> {
  const client = new FetcherClient(options);
  await client.start();
  return client;
}

class FetcherClient implements Fetcher {
  private child: ChildProcess | undefined;
  private channel: Duplex | undefined;
  private readonly calls = new Map<number, Call>();
  private nextCall = 1;
  private isClosing = false;
  private onReady: (() => void) | undefined;

  constructor(private readonly options: FetcherOptions) {}

  async start(): Promise<void> {
    const [command = "", ...args] = [...confine("files", "privileges"), process.execPath, "--disallow-code-generation-from-strings", PROGRAM];
    const child = spawn(command, args, { cwd: "/", env: { TZ: "UTC" }, stdio: ["ignore", "ignore", "pipe", "pipe"] });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => this.options.logger.error({ text }, "the fetcher complains"));
    const channel = child.stdio[3] as Duplex;
    this.child = child;
    this.channel = channel;
    channel.on("error", () => undefined);
    const ended = new Promise<never>((_resolve, reject) => child.once("close", () => reject(new Error("the fetcher ended before it was ready"))));
    child.once("close", () => this.onEnd());
    child.once("error", (error) => this.options.logger.error({ err: error }, "the fetcher cannot be started"));
    readFrames(
      channel,
      (frame) => this.onFrame(frame),
      () => child.kill("SIGKILL"),
    );
    const ready = new Promise<void>((resolve) => (this.onReady = resolve));
    this.write({ type: "configure", configuration: this.configuration() });
    await Promise.race([ready, ended]);
  }

  async fetchGuest(request: GuestRequest, body: Buffer, options: GuestFetchOptions = {}): Promise<{ response: GuestResponse; body: Buffer }> {
    const reply = await this.ask({ type: "guest", request, ...ofRun(options) }, body, options);
    if (!reply.response) throw new FetchFailed("failed", "the fetcher gave no response");
    return { response: reply.response, body: reply.body };
  }

  async checkGuest(url: string, options: GuestFetchOptions = {}): Promise<void> {
    await this.ask({ type: "check", url, ...ofRun(options) }, undefined, options);
  }

  async fetchModule(url: string, maxBytes: number): Promise<Buffer> {
    return (await this.ask({ type: "module", url, maxBytes })).body;
  }

  async fetchCode(cid: string, maxBytes: number): Promise<Buffer> {
    return (await this.ask({ type: "code", cid, maxBytes })).body;
  }

  async fetchJwks(url: string): Promise<string> {
    return (await this.ask({ type: "jwks", url })).body.toString("utf8");
  }

  async close(): Promise<void> {
    this.isClosing = true;
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const closed = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGKILL");
    await closed;
  }

  private configuration(): Configuration {
    const { moduleOrigin, gateways = [], kuboRpcUrl, jwksUrls = [], allowHosts = [], ports = [80, 443], dnsServers, uid } = this.options;
    const lists = { gateways: [...gateways], jwksUrls: [...jwksUrls], allowHosts: [...allowHosts], ports: [...ports] };
    return { ...lists, moduleOrigin, kuboRpcUrl, dnsServers: dnsServers && [...dnsServers], uid };
  }

  private ask(message: WithoutCall<Ask>, body?: Buffer, { signal, grow }: GuestFetchOptions = {}): Promise<Reply> {
    const call = this.nextCall++;
    return new Promise((resolve, reject) => {
      if (!this.channel || this.isClosing) return reject(new FetchFailed("unavailable", "the fetcher is not running"));
      if (signal?.aborted) return reject(new FetchFailed("failed", "the fetch was cancelled"));
      const onAbort = () => this.write({ type: "cancel", call });
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          signal?.removeEventListener("abort", onAbort);
          settle(value);
        };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.calls.set(call, { resolve: settled(resolve), reject: settled(reject), grow });
      this.write({ ...message, call } as Ask, body);
    });
  }

  private write(message: ToFetcher, payload?: Buffer): void {
    if (this.channel) writeFrame(this.channel, message, payload);
  }

  private onFrame({ header, payload }: Frame): void {
    const parsed = fromFetcherSchema.safeParse(header);
    if (!parsed.success) return void this.child?.kill("SIGKILL");
    this.onMessage(parsed.data, payload);
  }

  private onMessage(message: FromFetcher, payload: Buffer): void {
    if (message.type === "ready") return this.onReady?.();
    if (message.type === "grow") return void this.grow(message.call);
    const waiting = this.calls.get(message.call);
    this.calls.delete(message.call);
    if (message.type === "done") waiting?.resolve({ response: message.response, body: payload });
    else waiting?.reject(new FetchFailed(message.code, message.message));
  }

  private async grow(call: number): Promise<void> {
    // A failure reaches the call by its signal.
    await this.calls
      .get(call)
      ?.grow?.()
      .catch(() => undefined);
    this.write({ type: "grown", call });
  }

  private onEnd(): void {
    this.channel = undefined;
    for (const { reject } of this.calls.values()) reject(new FetchFailed("unavailable", "the fetcher ended; try again"));
    this.calls.clear();
    if (this.isClosing) return;
    this.options.logger.error("the fetcher ended and is started again");
    const restart = () => this.start().catch((error: unknown) => this.options.logger.error({ err: error }, "the fetcher cannot be started"));
    setTimeout(() => !this.isClosing && void restart(), RESTART_MS).unref();
  }
}

/** Without a run nobody counts. */
const ofRun = ({ run = -1, lookups = Number.MAX_SAFE_INTEGER }: GuestFetchOptions): { run: number; lookups: number } => ({ run, lookups });
