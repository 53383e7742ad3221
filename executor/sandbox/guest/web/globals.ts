/**
 * Web globals, each created from its library at its first read: the bundler runs a module only when its `require` is
 * reached.
 */
import type { Bridge, Host } from "../bridge";
import type * as Abort from "./abort";
import type * as Clone from "./clone";
import type * as Crypto from "./crypto/crypto";
import type * as Encoding from "./encoding";
import type * as Events from "./events";
import type * as Files from "./files";
import type * as Http from "./http";
import type * as Inspect from "./inspect";
import type * as Streams from "./streams";
import type * as Url from "./url";

/** Names of globals, and what has them. */
type Globals = readonly (readonly [names: readonly string[], from: () => object])[];

export function webGlobals(bridge: Bridge, random: Host["random"], convert: Host["convert"]): Globals {
  const encoding = once(() => (require("./encoding") as typeof Encoding).createEncoding(convert));
  const abort = () => require("./abort") as typeof Abort;
  const files = () => require("./files") as typeof Files;
  const streams = () => require("./streams") as typeof Streams;
  const texts = once(() => streams().textStreams(encoding()));
  const http = once(() => (require("./http") as typeof Http).createHttp(bridge, encoding(), files));
  const crypto = once(() => (require("./crypto/crypto") as typeof Crypto).createCrypto(random, encoding()));
  return [
    [["URL", "URLSearchParams"], () => require("./url") as typeof Url],
    [["TextEncoder", "TextDecoder", "atob", "btoa"], encoding],
    [["structuredClone"], () => require("./clone") as typeof Clone],
    [["AbortController", "AbortSignal", "DOMException"], abort],
    [["Event", "EventTarget", "CustomEvent"], () => require("./events") as typeof Events],
    [["Blob", "File", "FormData"], files],
    [["ReadableStream", "WritableStream", "TransformStream"], streams],
    [["ByteLengthQueuingStrategy", "CountQueuingStrategy"], streams],
    [["CompressionStream", "DecompressionStream"], streams],
    [["TextEncoderStream", "TextDecoderStream"], texts],
    [["fetch", "Headers", "Request", "Response"], http],
    [["crypto"], () => ({ crypto: crypto() })],
    [["performance"], () => ({ performance: clock() })],
  ];
}

/** Formats values that are not strings. */
export const inspector = once(() => (require("./inspect") as typeof Inspect).inspect);

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** Whole milliseconds only: a finer clock would allow timing attacks on other processes. */
function clock(): object {
  const { now } = Date;
  const timeOrigin = now();
  return Object.freeze({ timeOrigin, now: () => now() - timeOrigin });
}
