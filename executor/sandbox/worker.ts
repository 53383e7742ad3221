/** The keyholder's handle on one child process: starts it, passes messages, watches its memory, ends it. */
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { readFrames, writeFrame, type Frame } from "../frames";
import { loopTurns } from "../turns";
import { launchChild, type LaunchOptions } from "./launch";
import { fromChildSchema, type FromChild, type ToChild } from "./messages";

const READY_MS = 15_000;
const STDERR_TAIL = 8_192;
const PAGE_BYTES = 4_096;

/** How a child ended. `byUs` is why we ended it, if we did. */
export interface WorkerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  stderr: string;
  byUs?: string;
}

export interface WorkerEvents {
  onMessage(message: FromChild, payload: Buffer): void;
  onExit(exit: WorkerExit): void;
  /** Resolves when a large payload may be taken in. */
  room(): Promise<unknown>;
}

export class Worker {
  readonly bornAt = Date.now();
  runs = 0;
  /** The account, key and code it belongs to while warm. */
  affinity: string | undefined;
  events: WorkerEvents | undefined;
  private readonly child: ChildProcess;
  private readonly channel: Duplex;
  private readonly waiting = new Map<FromChild["type"], (message: FromChild) => void>();
  private stderr = "";
  private killedFor: string | undefined;
  private exit: WorkerExit | undefined;
  readonly exited: Promise<WorkerExit>;

  constructor(
    options: LaunchOptions,
    private readonly logger: Logger,
  ) {
    this.child = launchChild(options);
    this.channel = this.child.stdio[3] as Duplex;
    // Writes to a child that has just died fail here; its exit is what counts.
    this.channel.on("error", () => undefined);
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr = (this.stderr + text).slice(-STDERR_TAIL)));
    readFrames(
      this.channel,
      (frame) => this.onFrame(frame),
      (reason) => this.kill(`broke the channel: ${reason}`),
      { turn: (payloadBytes) => this.turn(payloadBytes) },
    );
    this.exited = new Promise((resolve) => {
      this.child.once("error", (error) => resolve(this.onEnd(null, null, error.message)));
      this.child.once("close", (code, signal) => resolve(this.onEnd(code, signal)));
    });
  }

  get pid(): number | undefined {
    return this.child.pid;
  }

  get isAlive(): boolean {
    return this.exit === undefined && this.killedFor === undefined;
  }

  /** Resolves when the child can take a run; rejects when it ends or takes too long. */
  async ready(): Promise<void> {
    await this.expect("ready");
  }

  /** Has the child try its walls. */
  async selfTest(secretPaths: string[]): Promise<{ missing: string[]; held: number }> {
    const answer = this.expect("self-test");
    this.send({ type: "self-test", secretPaths });
    return (await answer) as Extract<FromChild, { type: "self-test" }>;
  }

  /** `onSent` is told when the child has taken the payload, or never will. */
  send(message: ToChild, payload?: Buffer, onSent?: () => void): void {
    if (this.isAlive) writeFrame(this.channel, message, payload, onSent);
    else onSent?.();
  }

  /** SIGKILL: nothing a child does may delay its end. */
  kill(reason: string): void {
    if (!this.isAlive) return;
    this.killedFor = reason;
    this.child.kill("SIGKILL");
  }

  /** Resident memory in bytes; 0 where it cannot be read. */
  residentBytes(): number {
    try {
      return Number(readFileSync(`/proc/${this.pid}/statm`, "latin1").split(" ")[1]) * PAGE_BYTES;
    } catch {
      return 0;
    }
  }

  /** Large frames are read in turns, and large payloads only while there is room for them. */
  private async turn(payloadBytes: number): Promise<void> {
    if (payloadBytes > 0) await this.events?.room();
    await loopTurns.take(this.affinity ?? "");
  }

  private expect(type: FromChild["type"]): Promise<FromChild> {
    const message = new Promise<FromChild>((resolve) => this.waiting.set(type, resolve));
    const ended = this.exited.then((exit) => {
      throw new Error(`a sandbox child ended before it was ready: ${exit.stderr.trim() || `code ${exit.code}, signal ${exit.signal}`}`);
    });
    const timer = setTimeout(() => this.kill("was not ready in time"), READY_MS);
    return Promise.race([message, ended]).finally(() => clearTimeout(timer));
  }

  private onFrame({ header, payload }: Frame): void {
    const parsed = fromChildSchema.safeParse(header);
    if (!parsed.success) {
      this.logger.warn({ pid: this.pid }, "a child sent a message of no known form");
      return this.kill("sent a message of no known form");
    }
    const waiter = this.waiting.get(parsed.data.type);
    this.waiting.delete(parsed.data.type);
    if (waiter) return waiter(parsed.data);
    this.events?.onMessage(parsed.data, payload);
  }

  private onEnd(code: number | null, signal: NodeJS.Signals | null, problem = ""): WorkerExit {
    this.exit = { code, signal, stderr: this.stderr + problem, ...(this.killedFor !== undefined && { byUs: this.killedFor }) };
    this.events?.onExit(this.exit);
    return this.exit;
  }
}
