/** Worker thread that parses large requests, and takes their code out of them as the bytes that a child gets. */
import { free } from "../protocol/free";
import { answerEach } from "../protocol/threadOf";
import type { ParsedRequest } from "./requests";

answerEach<Uint8Array<ArrayBuffer>, ParsedRequest>(parse, (parsed) => (parsed?.code ? [parsed.code.buffer] : []));

function parse(bytes: Uint8Array<ArrayBuffer>): ParsedRequest {
  try {
    const value = JSON.parse(Buffer.from(bytes.buffer).toString("utf8")) as { code?: unknown } | null;
    const text = value?.code;
    if (value === null || typeof text !== "string") return { value };
    delete value.code;
    return { value, code: new TextEncoder().encode(text) };
  } catch {
    return undefined;
  } finally {
    free(bytes);
  }
}
