/** Reads request bodies: type, size, UTF-8, JSON, depth. */
import rawBody from "raw-body";
import { KeywrightError } from "../../protocol/errors";
import type { BodyKind } from "../../protocol/http";
import { WIRE_LIMITS } from "../../protocol/limits";
import { builtFile } from "../../protocol/built";
import { ThreadOf } from "../../protocol/threadOf";
import type { RelayerContext } from "./context";
import { MOST_VALUES, parseJsonText, type ParsedJson } from "./jsonText";

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

export async function readBody(ctx: RelayerContext, kind: BodyKind): Promise<Buffer> {
  if (kind === "none" || !hasBody(ctx)) return Buffer.alloc(0);
  const limit = LIMITS[kind];
  try {
    return await rawBody(ctx.req, { limit, length: hasUnknownLength(ctx) ? undefined : ctx.request.length });
  } catch (error) {
    if (isRawBodyError(error) && error.type === "entity.too.large") throw tooLarge(limit);
    throw new KeywrightError("malformed_json", "The body ended before it was complete.", {}, { cause: error });
  }
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
  too_many_values: () => new KeywrightError("invalid_value", `The body contains more than ${MOST_VALUES} values.`),
};
