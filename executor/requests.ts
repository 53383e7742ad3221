/** Requests to the keyholder: JSON, of a run in three parts. */
import type { IncomingMessage } from "node:http";
import { KeywrightError } from "../protocol/errors";
import { EXECUTOR_CALLS, type ExecutorCall, type ExecutorRequest } from "../protocol/executor";
import type { Grant } from "../protocol/fairShare";
import { free } from "../protocol/free";
import { MIB } from "../protocol/limits";
import { ThreadOf } from "../protocol/threadOf";
import { built } from "./built";
import { LARGE_CODE_BYTES } from "./code/memory";

/**
 * Code is at most 16 MiB. JSON escapes may be longer, but then they were in the client's request too, which the relayer
 * limits to 17 MiB.
 */
export const MAX_RUN_BYTES = 24 * MIB;
/** Parameters of a megabyte, of which JSON may escape a byte as six, and small code. */
const MAX_SMALL_RUN_BYTES = 8 * MIB;
const MAX_BODY_BYTES = 4 * MIB;
const LINE_END = 0x0a;

/** What belongs to a large request beside its parsed form. */
export interface LargeRequest {
  /** What it takes of the memory for code: all of it until the answer, unless less is needed. */
  readonly memory: Pick<Grant, "shrink" | "rest" | "keep">;
  /** Aborted with Preempted when others need the memory. */
  readonly over: AbortSignal;
  /** Its code as UTF-8, which is not in its parsed form then. */
  code?: Buffer;
}

export interface Parts<C extends ExecutorCall> {
  readonly first: Promise<ExecutorRequest<C>>;
  /** The JSON value of the next part. */
  readonly rest: () => Promise<unknown>;
}

/** Undefined when it is not JSON. */
export type ParsedRequest = { readonly value: unknown; readonly code?: Uint8Array<ArrayBuffer> } | undefined;

/** To parse code of many megabytes takes a tenth of a second, and as much for the collection of what it leaves. */
const thread = new ThreadOf<Uint8Array<ArrayBuffer>, ParsedRequest>(built("requestThread.js"));

/**
 * A run's request is the body's first line, parsed as soon as it has arrived, and two lines follow; other calls' is the
 * whole of it. JSON contains no raw line feed inside strings. Nothing refers to the request's text afterwards: a run
 * outlives it long.
 */
export function readParts<C extends ExecutorCall>(request: IncomingMessage, name: C, large?: LargeRequest): Parts<C> {
  const first = Promise.withResolvers<ExecutorRequest<C>>();
  const rest = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const unread = rest.map(({ promise }) => promise);
  // Only awaited where further parts are expected.
  for (const part of unread) part.catch(() => undefined);
  const maxBytes = name !== "run" ? MAX_BODY_BYTES : large === undefined ? MAX_SMALL_RUN_BYTES : MAX_RUN_BYTES;
  let chunks: Buffer[] = [];
  let length = 0;
  let complete = 0;
  let hasFailed = false;
  const take = (last: Buffer[] = []): Buffer<ArrayBuffer> => {
    const bytes = Buffer.concat([...chunks, ...last]);
    // As garbage, these would have all of the heap collected at once.
    if (large !== undefined) chunks.forEach(free);
    chunks = [];
    return bytes;
  };
  const fail = (error: Error): void => {
    hasFailed = true;
    if (large !== undefined) chunks.forEach(free);
    chunks = [];
    first.reject(error);
    for (const part of rest) part.reject(error);
  };
  const endPart = (last?: Buffer): void => {
    const bytes = take(last && [last]);
    const later = rest[complete++ - 1];
    if (later !== undefined) return later.resolve(bytes.toString("utf8"));
    const parsing = parsed(bytes, name === "run" ? large : undefined);
    first.resolve(parsing.then((value) => requestOf(name, value)));
  };
  const endOfPart = (chunk: Buffer): number =>
    name === "run" && complete <= rest.length ? chunk.indexOf(LINE_END) : -1;
  request.on("data", (chunk: Buffer) => {
    if (hasFailed) return;
    length += chunk.length;
    if (length > maxBytes)
      return fail(new KeywrightError("payload_too_large", `The call's body is larger than ${maxBytes} bytes.`));
    let left = chunk;
    for (let end = endOfPart(left); end >= 0; end = endOfPart(left)) {
      endPart(left.subarray(0, end));
      left = left.subarray(end + 1);
    }
    if (complete <= rest.length) chunks.push(left);
  });
  request.once("end", () => {
    while (!hasFailed && complete <= rest.length) endPart();
  });
  request.once("error", fail);
  request.once("close", () => fail(DISCONNECTED));
  return { first: first.promise, rest: async () => parseJson((await unread.shift()) ?? "") };
}

/** Never sent; only its status is logged. */
export const DISCONNECTED = new KeywrightError("timed_out", "The caller disconnected.");

async function parsed(bytes: Buffer<ArrayBuffer>, large: LargeRequest | undefined): Promise<unknown> {
  // A smaller one than was announced may be in memory that others share, which cannot be transferred.
  if (large === undefined || bytes.length <= LARGE_CODE_BYTES) return parseJson(bytes.toString("utf8"));
  const answer = await thread.ask(bytes, [bytes.buffer]);
  if (answer === undefined) throw notJson();
  const { value, code } = answer;
  if (code !== undefined) large.code = Buffer.from(code.buffer);
  return value;
}

function requestOf<C extends ExecutorCall>(name: C, value: unknown): ExecutorRequest<C> {
  const request = EXECUTOR_CALLS[name].request.safeParse(value);
  if (request.success) return request.data as ExecutorRequest<C>;
  const fields = request.error.issues.map(({ path }) => path.join(".") || "body");
  throw new KeywrightError(
    "invalid_body",
    `The request has the wrong shape at ${[...new Set(fields)].slice(0, 8).join(", ")}.`,
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

const notJson = (): KeywrightError => new KeywrightError("malformed_json", "The call's body is not JSON.");
