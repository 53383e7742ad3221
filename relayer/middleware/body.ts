/** Reading a body: type, size, UTF-8, JSON, depth. Source: wire "Requests and answers" (bodies), "Errors" (400, 413, 415). */
import rawBody from "raw-body";
import { KeywrightError } from "../../protocol/errors";
import type { BodyKind } from "../../protocol/http";
import { WIRE_LIMITS } from "../../protocol/limits";
import type { RelayerContext } from "./context";

const LIMITS: Record<Exclude<BodyKind, "none">, number> = {
  json: WIRE_LIMITS.bodyBytes,
  raw: WIRE_LIMITS.bodyBytes,
  code: WIRE_LIMITS.codeBodyBytes,
  signature: WIRE_LIMITS.signatureBodyBytes,
};

const hasBody = (ctx: RelayerContext): boolean => ctx.get("Transfer-Encoding") !== "" || Number(ctx.get("Content-Length") || "0") > 0;

/** 415 and 413 as far as the headers tell; called before anything is read. */
export function requireAcceptableBody(ctx: RelayerContext, kind: BodyKind): void {
  if (kind === "none" || !hasBody(ctx)) return;
  const declared = Number(ctx.get("Content-Length") || "0");
  if (kind !== "raw") requireJsonType(ctx);
  if (declared > LIMITS[kind]) throw tooLarge(LIMITS[kind]);
}

function requireJsonType(ctx: RelayerContext): void {
  const encoding = ctx.get("Content-Encoding").toLowerCase();
  if (encoding !== "" && encoding !== "identity") throw new KeywrightError("unsupported_media_type", "Send the body without a Content-Encoding.");
  if (!ctx.is("json", "+json")) throw new KeywrightError("unsupported_media_type", "Send the body as application/json.");
  const charset = ctx.request.charset.toLowerCase();
  if (charset !== "" && charset !== "utf-8" && charset !== "utf8") throw new KeywrightError("unsupported_media_type", "JSON is sent in UTF-8.");
}

/** Whether only reading can tell the size. */
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

const isRawBodyError = (error: unknown): error is Error & { type: string } => error instanceof Error && "type" in error && typeof error.type === "string";

const tooLarge = (limit: number): KeywrightError =>
  new KeywrightError("payload_too_large", `The body may have at most ${limit} bytes here.`, { limit_bytes: limit });

/** The JSON value of a body; nothing at all counts as `{}`. */
export function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return {};
  const value = parseJson(bytes);
  if (depthExceeds(value, WIRE_LIMITS.jsonDepth)) throw new KeywrightError("invalid_value", `The body is nested deeper than ${WIRE_LIMITS.jsonDepth} levels.`);
  return value;
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new KeywrightError("malformed_json", "The body is not JSON in UTF-8.");
  }
}

/** Level by level: recursion would let the depth it looks for exhaust the stack. */
function depthExceeds(value: unknown, limit: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limit) return true;
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
  }
  return false;
}
