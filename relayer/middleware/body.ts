/** Reads request bodies: type, size, UTF-8, JSON, depth. */
import { PassThrough, addAbortSignal, type Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import rawBody from "raw-body";
import { KeywrightError } from "../../protocol/errors";
import { FairShare, inScope, Preempted, type Grant, type Scope } from "../../protocol/fairShare";
import type { BodyKind } from "../../protocol/http";
import { SHARED_LIMITS, TRIGGER_LIMITS, WIRE_LIMITS } from "../../protocol/limits";
import { builtFile } from "../../protocol/built";
import { ThreadOf } from "../../protocol/threadOf";
import {
  crowded,
  MEDIUM_BYTES,
  MEMORY_PER_BYTE,
  memoryOf,
  QUICK_BYTES,
  sharedBy,
  takeMemory,
  takeRoom,
  type BodyMemory,
} from "../bodyMemory";
import type { RelayerContext } from "./context";
import { MAX_VALUES, parseJsonText, type ParsedJson } from "./jsonText";

const LIMITS: Record<Exclude<BodyKind, "none">, number> = {
  json: WIRE_LIMITS.bodyBytes,
  raw: WIRE_LIMITS.bodyBytes,
  code: WIRE_LIMITS.codeBodyBytes,
  signature: WIRE_LIMITS.signatureBodyBytes,
  hook: TRIGGER_LIMITS.hookBodyBytes,
};

export const isRaw = (kind: BodyKind): boolean => kind === "raw" || kind === "hook";

const hasBody = (ctx: RelayerContext): boolean =>
  ctx.get("Transfer-Encoding") !== "" || Number(ctx.get("Content-Length") || "0") > 0;

/** Rejects with 415 or 413 by the headers alone, before the body is read. */
export function requireAcceptableBody(ctx: RelayerContext, kind: BodyKind): void {
  if (kind === "none" || !hasBody(ctx)) return;
  const declared = Number(ctx.get("Content-Length") || "0");
  if (!isRaw(kind) && !mayBeNone(ctx)) requireJsonType(ctx);
  if (declared > LIMITS[kind]) throw tooLarge(LIMITS[kind]);
}

function requireJsonType(ctx: RelayerContext): void {
  const encoding = ctx.get("Content-Encoding").toLowerCase();
  if (encoding !== "" && encoding !== "identity")
    throw new KeywrightError("unsupported_media_type", "Send the body without a Content-Encoding.");
  if (!ctx.is("json", "+json"))
    throw new KeywrightError("unsupported_media_type", "Send the body as application/json.");
  const charset = ctx.request.charset.toLowerCase();
  if (charset !== "" && charset !== "utf-8" && charset !== "utf8")
    throw new KeywrightError("unsupported_media_type", "JSON is sent in UTF-8.");
}

/** Whether the size is known only after reading. */
const hasUnknownLength = (ctx: RelayerContext): boolean => ctx.get("Transfer-Encoding") !== "";

/** A body in chunks that names no type may have none: its type is required once there is something of it. */
const mayBeNone = (ctx: RelayerContext): boolean => hasUnknownLength(ctx) && ctx.get("Content-Type") === "";

/** Up to this they do not count: a connection takes more. */
const SMALL_BYTES = 4 * 1_024;
/** Those that count only while they arrive, as a rule at once; larger ones count for as long as they are needed. */
const arriving = sharedBy(SHARED_LIMITS.arrivingBodyBytes, QUICK_BYTES);
/**
 * What is made of large ones, until the executor has it, is done one after the other: each takes both event loops
 * of the services for tenths of a second, in which others' small requests wait.
 */
const turns = new FairShare({ total: 1, unit: 0 });
/** The pause after it included. */
const MAX_TURN_MS = 1_000;
/** What passes between two while others wait, as a multiple of what the first took. */
const PAUSE = 3;

export interface Body {
  readonly bytes: Buffer;
  /** From now on only this is needed, which was made of it: it takes no more memory than that. */
  readonly keepOnly: (made: unknown) => void;
  /**
   * What is left of it is not needed any more, but of some use: `letGo` drops that when others need its memory. Without
   * effect where a body takes no memory of others.
   */
  readonly lend: (letGo: () => void) => void;
}

const unshared = (bytes: Buffer): Body => ({ bytes, keepOnly: () => undefined, lend: () => undefined });

/** A body is read when there is room for it. One that arrives slowly gives way to others. */
export async function readBody(ctx: RelayerContext, kind: BodyKind, room?: BodyMemory): Promise<Body> {
  try {
    const body = await readWhole(ctx, kind, room);
    if (body.bytes.length > 0 && !isRaw(kind) && mayBeNone(ctx)) requireJsonType(ctx);
    return body;
  } catch (error) {
    // The rest is discarded: else no further request on its connection would be read.
    ctx.req.unpipe().resume();
    throw error;
  }
}

async function readWhole(ctx: RelayerContext, kind: BodyKind, room: BodyMemory | undefined): Promise<Body> {
  if (kind === "none" || !hasBody(ctx)) return unshared(Buffer.alloc(0));
  const limit = LIMITS[kind];
  const length = hasUnknownLength(ctx) ? undefined : ctx.request.length;
  const most = length ?? limit;
  if (room === undefined || most <= SMALL_BYTES) return unshared(await received(ctx.req, limit, length));
  if (most > QUICK_BYTES) {
    const body = await readInto(await takeMemory(most, MEMORY_PER_BYTE, room), ctx, limit, room.scope);
    return most > MEDIUM_BYTES ? inTurn(body, room) : body;
  }
  return inScope(room.account, undefined, async (scope) => {
    const memory = await takeRoom(arriving, most, { ...room, scope });
    return unshared((await readInto(memory, ctx, limit, scope)).bytes);
  });
}

/** While others wait for theirs, some time passes after it: small requests are served meanwhile. */
async function inTurn(body: Body, room: BodyMemory): Promise<Body> {
  // Its length was not known before.
  if (body.bytes.length <= MEDIUM_BYTES) return body;
  const done = Promise.withResolvers<undefined>();
  room.scope.over.addEventListener("abort", () => done.resolve(undefined), { once: true });
  await new Promise<void>((begin, refuse) => {
    // In a scope of its own, which is not left when the request is answered.
    const turn = inScope(room.account, room.scope.over, async (scope) => {
      // All callers without an account take turns as one: of addresses that come for the first time there is no end.
      const account = room.isAnonymous ? "" : room.account;
      await takeRoom({ ofAccounts: turns, ofAnonymous: turns }, 1, { scope, account });
      begin();
      const since = performance.now();
      // Its run may wait for memory in the keyholder: nobody else has to wait for that.
      await Promise.race([done.promise, pause(MAX_TURN_MS)]);
      const tookMs = performance.now() - since;
      const pauseMs = Math.min(PAUSE * tookMs, MAX_TURN_MS - tookMs);
      if (turns.waiting > 0 && pauseMs > 0) await pause(pauseMs);
    });
    turn.catch(refuse);
  });
  const end = (): void => done.resolve(undefined);
  return {
    bytes: body.bytes,
    keepOnly: (made) => (end(), body.keepOnly(made)),
    lend: (letGo) => (end(), body.lend(letGo)),
  };
}

const pause = (ms: number): Promise<void> => setTimeout(ms, undefined, { ref: false });

async function readInto(memory: Grant, ctx: RelayerContext, limit: number, scope: Scope): Promise<Body> {
  try {
    const length = hasUnknownLength(ctx) ? undefined : ctx.request.length;
    const bytes = await received(endedBy(scope.over, ctx.req), limit, length);
    // Its memory may have been given to others with the last byte.
    scope.over.throwIfAborted();
    memory.keep();
    memory.shrink(bytes.length * MEMORY_PER_BYTE);
    return { bytes, keepOnly: (made) => memory.shrink(memoryOf(made)), lend: memory.lend };
  } catch (error) {
    throw scope.over.reason instanceof Preempted ? crowded(1) : error;
  }
}

async function received(source: Readable, limit: number, length: number | undefined): Promise<Buffer> {
  try {
    return await rawBody(source, { limit, length });
  } catch (error) {
    if (isRawBodyError(error) && error.type === "entity.too.large") throw tooLarge(limit);
    throw new KeywrightError("malformed_json", "The body ended before it was complete.", {}, { cause: error });
  }
}

/** The request's body, which ends early with the signal; the request itself stays open for its answer. */
function endedBy(over: AbortSignal, request: RelayerContext["req"]): PassThrough {
  const body = addAbortSignal(over, new PassThrough());
  const onGone = (): void => void (request.readableEnded || body.destroy(new Error("the request has gone")));
  request.once("close", onGone).once("error", onGone);
  // It may have gone while it waited.
  if (request.destroyed) onGone();
  return request.pipe(body);
}

const isRawBodyError = (error: unknown): error is Error & { type: string } =>
  error instanceof Error && "type" in error && typeof error.type === "string";

const tooLarge = (limit: number): KeywrightError =>
  new KeywrightError("payload_too_large", `The body may have at most ${limit} bytes here.`, { limit_bytes: limit });

/** Bodies up to this size are parsed inline: faster than the round trip to a worker thread. */
const INLINE_BYTES = 64 * 1024;
const thread = new ThreadOf<Buffer, ParsedJson>(builtFile(__dirname, "jsonThread.js"));

/**
 * The JSON value of a body; an empty body counts as `{}`. Large bodies are parsed in a worker thread, off the serving
 * thread.
 */
export async function parseBody(bytes: Buffer): Promise<unknown> {
  const parsed = bytes.length <= INLINE_BYTES ? parseJsonText(bytes) : await thread.ask(bytes);
  if ("value" in parsed) return parsed.value;
  throw PROBLEMS[parsed.problem]();
}

const PROBLEMS: Record<Extract<ParsedJson, { problem: string }>["problem"], () => KeywrightError> = {
  malformed: () => new KeywrightError("malformed_json", "The body is not JSON in UTF-8."),
  too_deep: () =>
    new KeywrightError("invalid_value", `The body is nested deeper than ${WIRE_LIMITS.jsonDepth} levels.`),
  too_many_values: () => new KeywrightError("invalid_value", `The body contains more than ${MAX_VALUES} values.`),
};
