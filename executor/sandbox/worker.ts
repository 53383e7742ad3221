/** The keyholder's interface to one child process: starts it, passes messages, watches its memory, ends it. */
import { constants } from "node:os";
import type { Logger } from "pino";
import { readFrames, writeFrame, type Frame, type FrameSize } from "../frames";
import { inTurn } from "../loop";
import type { Findings } from "../confinement/barriers";
import { GUEST_PRIORITY, setPriorities } from "../confinement/priority";
import { redactedStderr } from "../confinement/redactedStderr";
import type { StartedProcess, Starter } from "../confinement/starter";
import { dataCapBytes, launchChild, residentCapBytes, type LaunchOptions } from "./launch";
import { ProcessUse, type Scheduled } from "./memory";
import { fromChildSchema, type FromChild, type ToChild } from "./messages";
import { defined } from "../../protocol/defined";

/** A start takes 0.2 s, and far longer on a machine that has just booted or whose memory is scarce. */
const READY_MS = 30_000;
const STDERR_TAIL = 8_192;
/** As bytes, and as the text in it with two bytes a character. */
const MEMORY_PER_HEADER_BYTE = 3;
const MAX_STRAYS = 1_000;
/** After this long a run counts half for how often a child was used lately. */
const HALF_LIFE_MS = 10_000;
/** With memory use above this fraction of a limit, a crash of the engine counts as running out of memory. */
const NEAR_CAP = 0.75;
/** Where two names share a number, the first. */
const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name as NodeJS.Signals]),
);

/** How a child exited. `killReason` is the reason if the keyholder ended it. */
export interface WorkerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  stderr: string;
  killReason?: string;
  /** Its memory was close to a limit at the last check. */
  wasNearCap: boolean;
}

/** Memory for a large message. */
export interface Room {
  /** The message is complete: from now on it is the service's turn. */
  arrived(): void;
  leave(): void;
}

export interface WorkerEvents {
  onMessage(message: FromChild, payload: Buffer): void;
  onExit(exit: WorkerExit): void;
  /** Resolves when there is memory for a large message; rejects when the run is over. */
  roomFor(bytes: number): Promise<Room>;
  /** Resolves when the large messages before have memory of their own. */
  largeAdmitted(): Promise<unknown>;
}

export class Worker {
  readonly bornAt = Date.now();
  runs = 0;
  /** Its runs, each counted less the longer ago it was; as of the last. */
  #lately = 0;
  #usedAt = 0;
  /** The account, key and CID it belongs to while warm. */
  affinity: string | undefined;
  /** Whose turns of the loop its large frames take. */
  account = "";
  /** Frames of its present run, or since its last one, that mean nothing. */
  #strays = 0;
  /** The child has cached the parsed form of the code it belongs to. */
  hasParsed = false;
  events: WorkerEvents | undefined;
  /** Of the large frame that is arriving. */
  #room: Room | undefined;
  readonly #process: StartedProcess;
  #programId: number | undefined;
  #use: ProcessUse | undefined;
  #wasNearCap = false;
  readonly #waiting = new Map<FromChild["type"], (message: FromChild) => void>();
  #stderr = "";
  #killedFor: string | undefined;
  #exit: WorkerExit | undefined;
  readonly exited: Promise<WorkerExit>;
  readonly #options: LaunchOptions;
  readonly #logger: Logger;

  constructor(options: LaunchOptions, starter: Starter, logger: Logger) {
    this.#options = options;
    this.#logger = logger;
    this.#process = launchChild(starter, options, (text) => (this.#stderr = (this.#stderr + text).slice(-STDERR_TAIL)));
    // Writes to a child that has just exited fail here; its end is what counts.
    this.#process.channel.on("error", () => undefined);
    readFrames(
      this.#process.channel,
      (frame) => this.#onFrame(frame),
      (reason) => this.kill(`broke the channel: ${reason}`),
      { room: (size) => this.#makeRoom(size), admit: (read) => this.#admit(read) },
    );
    this.exited = this.#process.ended.then(({ code, signal, problem }) => this.#onEnd(code, signal, problem));
  }

  /** Known once it is ready. */
  get pid(): number | undefined {
    return this.#programId;
  }

  get isAlive(): boolean {
    return this.#exit === undefined && this.#killedFor === undefined;
  }

  /** Of what it was sent, how many bytes are still here. */
  get unread(): number {
    return this.#process.channel.writableLength;
  }

  /** Resolves when the child can take a run; rejects when it exits or takes too long. */
  async ready(): Promise<void> {
    await this.#expect("ready");
    this.#programId = await this.#process.programId();
    setPriorities(this.#programId, GUEST_PRIORITY);
    this.#use = new ProcessUse(this.#programId);
    if (this.#exit !== undefined) this.#use.close();
  }

  /** Runs the child's self-test. */
  async selfTest(secretPaths: string[]): Promise<Findings> {
    const answer = this.#expect("self-test");
    this.send({ type: "self-test", secretPaths });
    return (await answer) as Extract<FromChild, { type: "self-test" }>;
  }

  /** `onSent` is called when the payload was written or never will be. */
  send(message: ToChild, payload?: Buffer, onSent?: () => void): void {
    if (this.isAlive) writeFrame(this.#process.channel, message, payload, onSent);
    else onSent?.();
  }

  /** SIGKILL: the child cannot delay it. */
  kill(reason: string): void {
    if (!this.isAlive) return;
    this.#killedFor = reason;
    this.#process.kill();
    // Killing the wrapper may leave a program that is still starting; closing its channel ends it.
    this.#process.channel.destroy();
  }

  /** Resident memory in bytes; 0 if unreadable. */
  residentBytes(): number {
    const { resident = 0, data = 0 } = this.#use?.memory() ?? {};
    // A child that has ended keeps what was last known of it.
    if (resident === 0) return 0;
    const { heapMiB } = this.#options;
    this.#wasNearCap = resident > NEAR_CAP * residentCapBytes(heapMiB) || data > NEAR_CAP * dataCapBytes(heapMiB);
    return resident;
  }

  /** Memory in bytes that it shares with no other process; 0 if unreadable. */
  unsharedBytes(): number {
    return this.#use?.memory().unshared ?? 0;
  }

  countRun(): void {
    this.#strays = 0;
    this.#lately = this.lately() + 1;
    this.#usedAt = performance.now();
    this.runs++;
  }

  /** How many runs it has had lately. */
  lately(): number {
    return this.#lately * 2 ** ((this.#usedAt - performance.now()) / HALF_LIFE_MS);
  }

  /** How long it ran and waited for a core. */
  scheduled(): Scheduled {
    return this.#use?.scheduled() ?? { ranMs: 0, waitedMs: 0 };
  }

  /** Whether it computes rather than waits. */
  isComputing(): boolean {
    return this.#use?.isComputing() ?? false;
  }

  /** Nothing of a large frame is read before those that came earlier have memory of their own, and it has some. */
  async #makeRoom({ header, payload }: FrameSize): Promise<void> {
    await this.events?.largeAdmitted();
    if (this.events === undefined) return this.kill("sent a large message outside a run");
    this.#room = await this.events.roomFor(header * MEMORY_PER_HEADER_BYTE + payload).catch(() => undefined);
  }

  /** Large frames are parsed in the account's turn; what they hold is then admitted to another share, or dropped. */
  async #admit<T>(read: () => T): Promise<T> {
    const room = this.#room;
    this.#room = undefined;
    room?.arrived();
    try {
      await this.events?.largeAdmitted();
      return await inTurn(this.account, read);
    } finally {
      void Promise.resolve(this.events?.largeAdmitted()).then(() => room?.leave());
    }
  }

  #expect(type: FromChild["type"]): Promise<FromChild> {
    const message = new Promise<FromChild>((resolve) => this.#waiting.set(type, resolve));
    const ended = this.exited.then((exit) => {
      const how = exit.killReason ?? `code ${exit.code}, signal ${exit.signal}`;
      throw new Error(
        `a sandbox child ended before it was ready (${how}): ${redactedStderr(exit.stderr) || "no output"}`,
      );
    });
    const timer = setTimeout(() => this.kill("was not ready in time"), READY_MS);
    return Promise.race([message, ended]).finally(() => clearTimeout(timer));
  }

  #onFrame({ header, payload }: Frame): void {
    const parsed = fromChildSchema.safeParse(header);
    if (!parsed.success) {
      this.#logger.warn({ pid: this.pid }, "a child sent a message of an unknown form");
      return this.kill("sent a message of an unknown form");
    }
    const waiter = this.#waiting.get(parsed.data.type);
    this.#waiting.delete(parsed.data.type);
    if (waiter) return waiter(parsed.data);
    if (this.events === undefined) this.countStray();
    else this.events.onMessage(parsed.data, payload);
  }

  /** A few come late from runs that ended; more take the loop's time for nothing. */
  countStray(): void {
    if (++this.#strays > MAX_STRAYS) this.kill("sent frames that mean nothing");
  }

  #onEnd(code: number | null, signal: NodeJS.Signals | null, problem = ""): WorkerExit {
    this.#use?.close();
    const killedFor = this.#killedFor;
    const wasNearCap = this.#wasNearCap;
    this.#exit = {
      ...endOf(code, signal),
      stderr: this.#stderr + problem,
      wasNearCap,
      ...defined({ killReason: killedFor }),
    };
    const stderr = redactedStderr(this.#exit.stderr);
    if (stderr !== "")
      this.#logger.warn({ pid: this.pid, ...endOf(code, signal), killReason: killedFor, stderr }, "a child ended");
    this.events?.onExit(this.#exit);
    return this.#exit;
  }
}

/** A wrapper reports the program's signal as 128 plus its number. */
function endOf(
  code: number | null,
  signal: NodeJS.Signals | null,
): { code: number | null; signal: NodeJS.Signals | null } {
  const reported = code === null ? undefined : SIGNALS.get(code - 128);
  return reported === undefined ? { code, signal } : { code: null, signal: reported };
}
