/** The keyholder's handle on one child process: starts it, passes messages, watches its memory, ends it. */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { readFrames, writeFrame, type Frame } from "../frames";
import { loopTurns } from "../turns";
import type { Confined } from "../walls/confine";
import type { Findings } from "../walls/barriers";
import { lastWords } from "../walls/lastWords";
import { dataCapBytes, launchChild, putLast, residentCapBytes, type LaunchOptions } from "./launch";
import { fromChildSchema, type FromChild, type ToChild } from "./messages";

const READY_MS = 10_000;
const STDERR_TAIL = 8_192;
/** Nearer than this to a cap, the end of the engine counts as the end of memory. */
const NEAR = 0.75;
const PAGE_BYTES = 4_096;
/** Of two names for one number the first. */
const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name as NodeJS.Signals]),
);

/** How a child ended. `byUs` is why we ended it, if we did. */
export interface WorkerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  stderr: string;
  byUs?: string;
  /** Its memory was close to a cap when it was last looked at. */
  wasNearCap: boolean;
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
  private readonly confined: Confined;
  private readonly channel: Duplex;
  /** The child's own process, known once it is ready. */
  private programId: number | undefined;
  private wasNearCap = false;
  private readonly waiting = new Map<FromChild["type"], (message: FromChild) => void>();
  private stderr = "";
  private killedFor: string | undefined;
  private exit: WorkerExit | undefined;
  readonly exited: Promise<WorkerExit>;

  constructor(
    private readonly options: LaunchOptions,
    private readonly logger: Logger,
  ) {
    this.confined = launchChild(options);
    this.channel = this.confined.channel;
    // Writes to a child that has just died fail here; its exit is what counts.
    this.channel.on("error", () => undefined);
    this.confined.process.stderr?.setEncoding("utf8").on("data", (text: string) => (this.stderr = (this.stderr + text).slice(-STDERR_TAIL)));
    readFrames(
      this.channel,
      (frame) => this.onFrame(frame),
      (reason) => this.kill(`broke the channel: ${reason}`),
      { turn: (payloadBytes) => this.turn(payloadBytes) },
    );
    this.exited = new Promise((resolve) => {
      this.confined.process.once("error", (error) => resolve(this.onEnd(null, null, error.message)));
      this.confined.process.once("close", (code, signal) => resolve(this.onEnd(code, signal)));
    });
  }

  get pid(): number | undefined {
    return this.programId ?? this.confined.process.pid;
  }

  get isAlive(): boolean {
    return this.exit === undefined && this.killedFor === undefined;
  }

  /** Resolves when the child can take a run; rejects when it ends or takes too long. */
  async ready(): Promise<void> {
    await this.expect("ready");
    this.programId = this.confined.programId();
    putLast(this.programId);
  }

  /** Has the child try its walls. */
  async selfTest(secretPaths: string[]): Promise<Findings> {
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
    this.confined.process.kill("SIGKILL");
    // A program whose wrapper ended while it was still being started is told so by the end of its channel.
    this.channel.destroy();
  }

  /** Resident memory in bytes; 0 where it cannot be read. */
  residentBytes(): number {
    try {
      const [, resident = 0, , , , data = 0] = readFileSync(`/proc/${this.pid}/statm`, "latin1")
        .split(" ")
        .map((pages) => Number(pages) * PAGE_BYTES);
      const { heapMiB } = this.options;
      this.wasNearCap = resident > NEAR * residentCapBytes(heapMiB) || data > NEAR * dataCapBytes(heapMiB);
      return resident;
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
      const how = exit.byUs ?? `code ${exit.code}, signal ${exit.signal}`;
      throw new Error(`a sandbox child ended before it was ready (${how}): ${lastWords(exit.stderr) || "it said nothing"}`);
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
    const { killedFor, wasNearCap } = this;
    this.exit = { ...endOf(code, signal), stderr: this.stderr + problem, wasNearCap, ...(killedFor !== undefined && { byUs: killedFor }) };
    const said = lastWords(this.exit.stderr);
    if (said !== "") this.logger.warn({ pid: this.pid, ...endOf(code, signal), byUs: killedFor, said }, "a child ended");
    this.events?.onExit(this.exit);
    return this.exit;
  }
}

/** A wrapper reports the program's signal as 128 and its number. */
function endOf(code: number | null, signal: NodeJS.Signals | null): { code: number | null; signal: NodeJS.Signals | null } {
  const reported = code === null ? undefined : SIGNALS.get(code - 128);
  return reported === undefined ? { code, signal } : { code: null, signal: reported };
}
