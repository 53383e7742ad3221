/** Reads request bodies: type, size, UTF-8, JSON, depth. */
import { PassThrough, addAbortSignal, type Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import rawBody from "raw-body";
import { KeywrightError } from "../../protocol/errors";
import { Crowded, FairShare, inScope, Preempted, type Grant, type Scope } from "../../protocol/fairShare";
import type { BodyKind } from "../../protocol/http";
import { MIB, SHARED_LIMITS, WIRE_LIMITS } from "../../protocol/limits";
import { builtFile } from "../../protocol/built";
import { ThreadOf } from "../../protocol/threadOf";
import type { RelayerContext } from "./context";
import { MAX_VALUES, parseJsonText, type ParsedJson } from "./jsonText";

const LIMITS: Record<Exclude<BodyKind, "none">, number> = {
  json: WIRE_LIMITS.bodyBytes,
  raw: WIRE_LIMITS.bodyBytes,
  code: WIRE_LIMITS.codeBodyBytes,
  signature: WIRE_LIMITS.signatureBodyBytes,
};

const hasBody = (ctx: RelayerContext): boolean =>
  ctx.get("Transfer-Encoding") !== "" || Number(ctx.get("Content-Length") || "0") > 0;

/** Rejects with 415 or 413 by the headers alone, before the body is read. */
export function requireAcceptableBody(ctx: RelayerContext, kind: BodyKind): void {
  if (kind === "none" || !hasBody(ctx)) return;
  const declared = Number(ctx.get("Content-Length") || "0");
  if (kind !== "raw") requireJsonType(ctx);
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

/** Up to this they do not count: a connection takes more. */
const SMALL_BYTES = 4 * 1_024;
/** Up to this they count while they arrive, as a rule at once, and larger ones until they are answered. */
const QUICK_BYTES = 64 * 1_024;
const MEDIUM_BYTES = MIB;
/** Memory for each byte of a body: as it arrives, and as text with two bytes a character, twice while it is parsed. */
const MEMORY_PER_BYTE = 4;
const sharedBy = (total: number, unit: number): FairShare =>
  new FairShare({ total, unit, mostWaiting: 512, patienceMs: SHARED_LIMITS.patienceMs });
/** By size, so that who sends code of many megabytes keeps out only those who do the same. */
const arriving = sharedBy(SHARED_LIMITS.arrivingBodyBytes, QUICK_BYTES);
const medium = sharedBy(SHARED_LIMITS.mediumBodyMemoryBytes, MEMORY_PER_BYTE * MEDIUM_BYTES);
const large = sharedBy(SHARED_LIMITS.bodyMemoryBytes, MEMORY_PER_BYTE * WIRE_LIMITS.codeBodyBytes);
/**
 * What is made of large ones, until the executor has it, is done one after the other: each takes both event loops
 * of the services for tenths of a second, in which others' small requests wait.
 */
const turns = new FairShare({ total: 1, unit: 0 });
/** The pause after it included. */
const MAX_TURN_MS = 1_000;
/** What passes between two while others wait, as a multiple of what the first took. */
const PAUSE = 3;
/** The longest that a body waits to be read. */
const MAX_WAIT_MS = 30_000;

/** Whose memory a body takes, until the scope is left. */
export interface BodyMemory {
  readonly scope: Scope;
  readonly account: string;
}

export interface Body {
  readonly bytes: Buffer;
  /**
   * What is left of it is not needed any more, but of some use: `letGo` drops that when others need its memory. Without
   * effect where a body takes no memory of others.
   */
  readonly lend: (letGo: () => void) => void;
}

const unshared = (bytes: Buffer): Body => ({ bytes, lend: () => undefined });

/** A body is read when there is room for it. One that arrives slowly gives way to others. */
export async function readBody(ctx: RelayerContext, kind: BodyKind, room?: BodyMemory): Promise<Body> {
  try {
    return await readWhole(ctx, kind, room);
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
  const { account } = room;
  if (most > MEDIUM_BYTES) return inTurn(await readInto(large, most * MEMORY_PER_BYTE, ctx, limit, room), room);
  if (most > QUICK_BYTES) return readInto(medium, most * MEMORY_PER_BYTE, ctx, limit, room);
  return inScope(account, undefined, async (scope) => {
    return unshared((await readInto(arriving, most, ctx, limit, { scope, account })).bytes);
  });
}

/** While others wait for theirs, some time passes after it: small requests are served meanwhile. */
async function inTurn(body: Body, { scope, account }: BodyMemory): Promise<Body> {
  // Its length was not known before.
  if (body.bytes.length <= MEDIUM_BYTES) return body;
  const done = Promise.withResolvers<undefined>();
  scope.over.addEventListener("abort", () => done.resolve(undefined), { once: true });
  await new Promise<void>((begin, refuse) => {
    // In a scope of its own, which is not left when the request is answered.
    const turn = inScope(account, scope.over, async (own) => {
      await takeRoom(turns, 1, { scope: own, account });
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
  return { ...body, lend: (letGo) => (done.resolve(undefined), body.lend(letGo)) };
}

const pause = (ms: number): Promise<void> => setTimeout(ms, undefined, { ref: false });

async function readInto(
  share: FairShare,
  amount: number,
  ctx: RelayerContext,
  limit: number,
  room: BodyMemory,
): Promise<Body> {
  const memory = await takeRoom(share, amount, room);
  try {
    const length = hasUnknownLength(ctx) ? undefined : ctx.request.length;
    const bytes = await received(endedBy(room.scope.over, ctx.req), limit, length);
    // Its memory may have been given to others with the last byte.
    room.scope.over.throwIfAborted();
    memory.keep();
    memory.shrink(Math.min(amount, bytes.length * MEMORY_PER_BYTE));
    return { bytes, lend: memory.lend };
  } catch (error) {
    throw room.scope.over.reason instanceof Preempted ? crowded(1) : error;
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

async function takeRoom(share: FairShare, bytes: number, { scope, account }: BodyMemory): Promise<Grant> {
  return scope.take(share, bytes, { account, withinMs: MAX_WAIT_MS }).catch((error: unknown) => {
    throw error instanceof Crowded ? crowded(error.retryAfterSeconds) : error;
  });
}

const crowded = (retryAfterSeconds: number): KeywrightError =>
  new KeywrightError("queue_full", "Too many bodies are under way at the moment.", {}, { retryAfterSeconds });

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
