/** The keyholder's server: JSON over HTTP on a Unix socket, every message validated in both directions. */
import { randomUUID } from "node:crypto";
import { chmodSync, chownSync, lstatSync, mkdirSync, unlinkSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { dirname } from "node:path";
import type { Logger } from "pino";
import { KeywrightError } from "../protocol/errors";
import {
  EXECUTOR_CALLS,
  REQUEST_ID_HEADER,
  SHARE_HEADER,
  runKeyOf,
  type ExecutorAnswer,
  type ExecutorCall,
  type ExecutorRequest,
  type RunPermission,
} from "../protocol/executor";
import { Crowded, inScope, Preempted } from "../protocol/fairShare";
import { RunDenied } from "./access/authorize";
import { CodeMemory, LARGE_CODE_BYTES, MEMORY_PER_REQUEST_BYTE } from "./code/memory";
import { DISCONNECTED, MAX_RUN_BYTES, readParts, type LargeRequest } from "./requests";

export interface CallContext {
  /** The JSON value of the next part of a request in parts; resolves when it has arrived. */
  readonly rest: () => Promise<unknown>;
  /** Sends the first line of a two-part answer; a later refusal is sent as its second line. */
  readonly permit: (permission: RunPermission) => void;
  /** Aborted when the caller disconnects before the answer. */
  readonly signal: AbortSignal;
  readonly large?: LargeRequest;
  /** The relayer's name for the request. */
  readonly requestId: string;
  /** Of the service: a line about the request names it. */
  readonly log: Logger;
}
export type Handlers = {
  readonly [C in ExecutorCall]: (
    request: ExecutorRequest<C>,
    context: CallContext,
  ) => ExecutorAnswer<C> | Promise<ExecutorAnswer<C>>;
};

/** All that is logged of a call. */
interface CallLine {
  readonly requestId: string;
  readonly path: string | undefined;
  readonly status: number;
  readonly ms: number;
}

export interface ServerOptions {
  readonly socketPath: string;
  /** Numeric id of the group that may connect; without it only the owner may. */
  readonly group?: number | undefined;
  readonly logger: Logger;
}

const BODY_TIMEOUT_MS = 30_000;
const LINES = "application/x-ndjson";
const REQUEST_ID = /^[0-9a-zA-Z-]{1,64}$/;
const CALLS = new Map<string, ExecutorCall>(
  Object.entries(EXECUTOR_CALLS).map(([name, { path }]) => [path, name as ExecutorCall]),
);

/** Made all the time, by a relayer that has nothing to do. */
const QUIET: ReadonlySet<string> = new Set([EXECUTOR_CALLS.ready.path, EXECUTOR_CALLS.nextLeases.path]);

export class ExecutorServer {
  readonly #server: Server;
  #handlers: Partial<Handlers> | undefined;
  #isDraining = false;
  #open = 0;
  #onIdle: (() => void) | undefined;
  readonly #options: ServerOptions;
  readonly #calls: Logger;
  /** By account, as the relayer says. */
  readonly codeMemory = new CodeMemory();

  private constructor(options: ServerOptions) {
    this.#options = options;
    // No member of the line is secret; a search for secrets would cost more than the line.
    this.#calls = options.logger.child({}, { redact: [] });
    this.#server = createServer({ requestTimeout: BODY_TIMEOUT_MS, keepAliveTimeout: 60_000 }, (request, response) => {
      void this.#serve(request, response);
    });
  }

  /**
   * Listens with the final socket mode from the start, and answers 503 until `serve` is called: the socket exists
   * before the children, so that their self-test tries a real one. Throws when another executor listens there.
   */
  static async listen(options: ServerOptions): Promise<ExecutorServer> {
    await prepareSocket(options.socketPath);
    const server = new ExecutorServer(options);
    await server.#listen();
    return server;
  }

  /** Calls that are missing stay unanswered: a keyholder without a contract has only one. */
  serve(handlers: Partial<Handlers>): void {
    this.#handlers = handlers;
  }

  /** Accepts no new calls, lets open ones finish for `drainMs`, then closes every connection. */
  async close(drainMs: number): Promise<void> {
    if (!this.#server.listening) return;
    this.#isDraining = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    if (this.#open > 0) await this.#untilIdle(drainMs);
    this.#server.closeAllConnections();
    await closed;
  }

  #untilIdle(drainMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, drainMs);
      this.#onIdle = () => (clearTimeout(timer), resolve());
    });
  }

  #listen(): Promise<void> {
    const { socketPath, group, logger } = this.#options;
    const mask = process.umask(0o177);
    return new Promise<void>((resolve, reject) => {
      // Later, a connection that cannot be accepted ends nothing else.
      this.#server.on("error", (error) => {
        if (this.#server.listening) logger.error({ err: error }, "a connection could not be accepted");
        else reject(error);
      });
      this.#server.listen(socketPath, () => {
        if (group !== undefined) {
          chownSync(socketPath, process.getuid?.() ?? -1, group);
          chmodSync(socketPath, 0o660);
        }
        resolve();
      });
    }).finally(() => process.umask(mask));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const requestId = requestIdOf(request);
    const { logger: log } = this.#options;
    const gone = new AbortController();
    response.once("close", () => {
      if (!response.writableFinished) gone.abort();
    });
    this.#open++;
    let status = 200;
    const reply = new Reply(response);
    try {
      const context: Omit<CallContext, "rest"> = {
        signal: gone.signal,
        requestId,
        log,
        permit: (permission) => reply.permit(permission),
      };
      const { account, bytes } = sizeOf(request);
      reply.answer(
        bytes <= LARGE_CODE_BYTES
          ? await this.#answer(request, context)
          : await inScope(account, gone.signal, async (scope) => {
              const memory = await this.codeMemory.take(scope, bytes * MEMORY_PER_REQUEST_BYTE);
              return this.#answer(request, { ...context, large: { memory, over: scope.over } });
            }),
      );
    } catch (error) {
      if (gone.signal.aborted) log.info({ requestId }, "the caller disconnected");
      // Only here: each logger of its own looks through all that is never logged.
      const refusal = gone.signal.aborted ? DISCONNECTED : refusalOf(error, log.child({ requestId }));
      status = refusal.status;
      reply.refuse(refusal);
    } finally {
      const ms = Math.round((performance.now() - startedAt) * 100) / 100;
      const line: CallLine = { requestId, path: request.url?.slice(0, 64), status, ms };
      this.#calls[QUIET.has(request.url ?? "") ? "debug" : "info"](line, "call");
      if (--this.#open === 0) this.#onIdle?.();
    }
  }

  async #answer(request: IncomingMessage, context: Omit<CallContext, "rest">): Promise<unknown> {
    const name = CALLS.get(request.url ?? "");
    if (name === undefined) throw new KeywrightError("route_not_found", "The executor has no such call.");
    if (request.method !== "POST")
      throw new KeywrightError("method_not_allowed", "Every call to the executor is a POST.");
    if (this.#isDraining)
      throw new KeywrightError("shutting_down", "The executor is shutting down.", {}, { retryAfterSeconds: 5 });
    const { first, rest } = readParts(request, name, context.large);
    return this.#call(name, await first, { ...context, rest });
  }

  async #call<C extends ExecutorCall>(name: C, request: ExecutorRequest<C>, context: CallContext): Promise<unknown> {
    const { answer } = EXECUTOR_CALLS[name];
    const handler = this.#handlers?.[name] as Handlers[C] | undefined;
    if (handler === undefined) {
      const why = this.#handlers === undefined ? "is starting" : "has no contract";
      throw new KeywrightError("executor_unavailable", `The executor ${why}.`, {}, { retryAfterSeconds: 2 });
    }
    return answer.parse(await handler(request, context));
  }
}

/** Removes the socket of a killed executor; refuses one in use or a file of another kind. */
async function prepareSocket(socketPath: string): Promise<void> {
  mkdirSync(dirname(socketPath), { recursive: true, mode: 0o750 });
  const existing = lstatSync(socketPath, { throwIfNoEntry: false });
  if (existing === undefined) return;
  if (!existing.isSocket())
    throw new Error(`EXECUTOR_SOCKET ${socketPath} exists and is not a socket: remove it or name another path`);
  if (await isAlive(socketPath))
    throw new Error(`another executor listens on ${socketPath}: stop it or set another EXECUTOR_SOCKET`);
  unlinkSync(socketPath);
}

function isAlive(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    const settle = (alive: boolean): void => {
      socket.destroy();
      resolve(alive);
    };
    socket.once("connect", () => settle(true));
    socket.once("error", () => settle(false));
  });
}

/** The answer to a call: as a whole with its status, or, after a permission, as lines after the status was sent. */
class Reply {
  #isInLines = false;
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  permit(permission: RunPermission): void {
    if (this.#response.destroyed) return;
    this.#isInLines = true;
    this.#response.writeHead(200, { "content-type": LINES });
    this.#response.write(`${JSON.stringify(permission)}\n`);
  }

  answer(value: unknown): void {
    if (this.#isInLines) this.#end(JSON.stringify({ answer: value }));
    else this.#whole(200, value);
  }

  refuse(refusal: KeywrightError): void {
    const { status, code, detail, facts, retryAfterSeconds } = refusal;
    const refused = {
      code,
      detail,
      facts,
      retryAfterSeconds,
      ...(refusal instanceof RunDenied ? { key: runKeyOf(refusal.key) } : {}),
    };
    if (this.#isInLines) this.#end(JSON.stringify({ refused }));
    else this.#whole(status, refused);
  }

  #whole(status: number, value: unknown): void {
    const body = Buffer.from(JSON.stringify(value), "utf8");
    const closing = status === 413 ? { connection: "close" } : {};
    if (!this.#response.destroyed)
      this.#response.writeHead(status, {
        "content-type": "application/json",
        "content-length": body.length,
        ...closing,
      });
    this.#end(body);
  }

  #end(body: Buffer | string): void {
    if (!this.#response.destroyed) this.#response.end(body);
  }
}

/** Known errors are returned; unknown ones are logged, and the caller only learns that the service failed. */
function refusalOf(error: unknown, log: Logger): KeywrightError {
  if (error instanceof Crowded) return crowded(error);
  // Others needed what it held before any code ran.
  if (error instanceof Preempted) return crowded(new Crowded(1));
  if (error instanceof KeywrightError) {
    log[error.status >= 500 ? "warn" : "debug"]({ err: error }, "refused");
    return error;
  }
  log.error({ err: error }, "failed");
  return new KeywrightError("internal_error", "The executor failed; its log has the cause under this request's id.");
}

/** The queue has no room for this run, or had none for too long; nothing of it ran. */
function crowded({ retryAfterSeconds }: Crowded): KeywrightError {
  return new KeywrightError("queue_full", "The queue for runs is full at the moment.", {}, { retryAfterSeconds });
}

/** A body in parts has no length: its header tells, else the most that a run may send is assumed. */
function sizeOf({ url, headers }: IncomingMessage): { account: string; bytes: number } {
  const [named = "", account = ""] = String(headers[SHARE_HEADER] ?? "").split(" ");
  const unnamed = headers["content-length"] ?? (url === EXECUTOR_CALLS.run.path ? LARGE_CODE_BYTES : 0);
  const bytes = Number(named || unnamed);
  return { account, bytes: bytes >= 0 ? Math.min(MAX_RUN_BYTES, bytes) : MAX_RUN_BYTES };
}

function requestIdOf(request: IncomingMessage): string {
  const given = request.headers[REQUEST_ID_HEADER];
  return typeof given === "string" && REQUEST_ID.test(given) ? given : randomUUID();
}
