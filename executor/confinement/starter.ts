/**
 * Starts confined processes through a helper process, the starter. Spawning blocks the caller until the new process
 * runs, 10 to 40 ms on a busy machine, which would block every request to the keyholder; and a fork of the keyholder
 * would briefly copy its memory, keys included.
 */
import { fork, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { built } from "../built";
import type { Confinement } from "./confine";

/** The first line of a connection to the starter; the rest of the connection is the new process's channel. */
export interface StartRequest {
  readonly id: number;
  readonly nodeArguments: readonly string[];
  readonly confinement: Confinement;
}

export type ToStarter = { readonly type: "kill" | "find-program"; readonly id: number };

/** Events of the process with this id; `ended` is the last one. */
export type FromStarter =
  | { readonly type: "ready" }
  | { readonly type: "stderr"; readonly id: number; readonly text: string }
  | { readonly type: "program"; readonly id: number; readonly pid?: number }
  | ({ readonly type: "ended"; readonly id: number } & ProcessEnd);

export interface ProcessEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Why it could not be started, or cannot be watched any more. */
  readonly problem?: string;
}

export interface StartedProcess {
  /** Descriptor 3 of the program. Nothing may be written before the program has. */
  readonly channel: Socket;
  readonly ended: Promise<ProcessEnd>;
  /** The id of the program itself, not of its wrapper; undefined when it does not run. */
  programId(): Promise<number | undefined>;
  /** Ends the program and its wrappers with SIGKILL, also while they start. */
  kill(): void;
}

/** Callbacks for the events of one process. */
interface Watcher {
  onStderr(text: string): void;
  onProgram?(pid: number | undefined): void;
  onEnd(end: ProcessEnd): void;
}

const NOT_STARTED: ProcessEnd = { code: null, signal: null, problem: "it was not started" };
const LOST: ProcessEnd = { code: null, signal: null, problem: "the process that starts others has ended" };

export class Starter {
  /** Accessible to this user only. */
  readonly #folder = mkdtempSync(join(tmpdir(), "keywright-starter-"));
  readonly #watchers = new Map<number, Watcher>();
  #process: ChildProcess | undefined;
  #ready: Promise<void> | undefined;
  #starts = 0;
  #nextId = 1;

  /** Starts Node with these arguments; `onStderr` gets what it writes to standard error. */
  start(nodeArguments: readonly string[], confinement: Confinement, onStderr: (text: string) => void): StartedProcess {
    const id = this.#nextId++;
    const channel = new Socket();
    const { promise: ended, resolve } = Promise.withResolvers<ProcessEnd>();
    const watcher: Watcher = { onStderr, onEnd: (end) => (this.#watchers.delete(id), resolve(end)) };
    this.#watchers.set(id, watcher);
    let isAsked = false;
    channel.on("error", () => undefined);
    channel.once("close", () => isAsked || watcher.onEnd(NOT_STARTED));
    const ask = (): void => {
      isAsked = true;
      channel.write(`${JSON.stringify({ id, nodeArguments, confinement } satisfies StartRequest)}\n`);
    };
    this.#listening().then(
      (path) => channel.destroyed || channel.connect(path, ask),
      () => watcher.onEnd(NOT_STARTED),
    );
    return {
      channel,
      ended,
      programId: () => {
        const program = new Promise<number | undefined>((found) => (watcher.onProgram = found));
        this.#send({ type: "find-program", id });
        return Promise.race([program, ended.then(() => undefined)]);
      },
      kill: () => void (isAsked ? this.#send({ type: "kill", id }) : channel.destroy()),
    };
  }

  close(): void {
    this.#process?.removeAllListeners("exit");
    // On disconnect the starter kills the processes it has started, and exits.
    if (this.#process?.connected) this.#process.disconnect();
    this.#onExit();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The path where the starter listens; starts it if it does not run. */
  async #listening(): Promise<string> {
    const ready = (this.#ready ??= this.#startProcess());
    // One for which the system had no process is followed by another.
    ready.catch(() => this.#ready === ready && (this.#ready = undefined));
    await ready;
    return this.#path;
  }

  get #path(): string {
    return join(this.#folder, `${this.#starts}.sock`);
  }

  async #startProcess(): Promise<void> {
    this.#starts++;
    const starter = fork(built("confinement/starterProcess.js"), [this.#path], {
      cwd: "/",
      env: { TZ: "UTC" },
      execArgv: ["--disable-sigusr1"],
    });
    this.#process = starter;
    await new Promise<void>((resolve, reject) => {
      starter.on("message", (message: FromStarter) =>
        message.type === "ready" ? resolve() : this.#onMessage(message),
      );
      const end = (error: Error): void => {
        reject(error);
        // Another one may have been started meanwhile.
        if (this.#process === starter) this.#onExit();
      };
      starter.once("error", end);
      starter.once("exit", () => end(new Error("it ended before it was ready")));
    });
  }

  #onMessage(message: Exclude<FromStarter, { type: "ready" }>): void {
    const watcher = this.#watchers.get(message.id);
    if (message.type === "stderr") watcher?.onStderr(message.text);
    else if (message.type === "program") watcher?.onProgram?.(message.pid);
    else watcher?.onEnd(message);
  }

  /** Processes end together with their starter; the next start launches a new one. */
  #onExit(): void {
    this.#process = undefined;
    this.#ready = undefined;
    for (const watcher of [...this.#watchers.values()]) watcher.onEnd(LOST);
  }

  #send(message: ToStarter): void {
    if (this.#process?.connected) this.#process.send(message, () => undefined);
  }
}
