/**
 * Parses UTF-8 JSON, with limits on depth and number of values that no valid request reaches. Knows neither HTTP nor
 * threads.
 */
import { WIRE_LIMITS } from "../../protocol/limits";

export type ParsedJson =
  { readonly value: unknown } | { readonly problem: "malformed" | "too_deep" | "too_many_values" };

/**
 * Above the largest valid request: 64 KiB of parameters are at most 32,767 values. Parsing time grows with values, not
 * bytes.
 */
export const MAX_VALUES = 50_000;

/** An empty text counts as `{}`. */
export function parseJsonText(bytes: Uint8Array): ParsedJson {
  if (bytes.length === 0) return { value: {} };
  if (bytes.length > MAX_VALUES && holdsTooMany(bytes)) return { problem: "too_many_values" };
  const parsed = parse(bytes);
  return "value" in parsed && depthExceeds(parsed.value, WIRE_LIMITS.jsonDepth) ? { problem: "too_deep" } : parsed;
}

const STRICT = new TextDecoder("utf-8", { fatal: true });

function parse(bytes: Uint8Array): ParsedJson {
  try {
    return { value: JSON.parse(STRICT.decode(bytes)) };
  } catch {
    return { problem: "malformed" };
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPENINGS = new Set([0x5b, 0x7b]);

/** Counts commas and opening brackets outside of strings, before parsing. */
function holdsTooMany(bytes: Uint8Array): boolean {
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) at = endOfString(bytes, at);
    else if ((byte === COMMA || OPENINGS.has(byte)) && ++values > MAX_VALUES) return true;
  }
  return false;
}

/** Index of the closing quote of the string that begins at `start`; the end of the text if it is unterminated. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let backslashes = 0;
    while (bytes[end - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return bytes.length;
}

/** Iterates level by level: recursion could exhaust the stack on the very depth to be rejected. */
function depthExceeds(value: unknown, limit: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limit) return true;
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
  }
  return false;
}
