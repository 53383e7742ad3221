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

export function webGlobals(
  bridge: Bridge,
  random: Host["random"],
  convert: Host["convert"],
): Record<string, () => unknown> {
  const url = () => require("./url") as typeof Url;
  const encoding = once(() => (require("./encoding") as typeof Encoding).createEncoding(convert));
  const abort = () => require("./abort") as typeof Abort;
  const events = () => require("./events") as typeof Events;
  const files = () => require("./files") as typeof Files;
  const streams = () => require("./streams") as typeof Streams;
  const texts = once(() => streams().textStreams(encoding()));
  const http = once(() => (require("./http") as typeof Http).createHttp(bridge, encoding(), abort(), files));
  const crypto = once(() => (require("./crypto/crypto") as typeof Crypto).createCrypto(random, encoding()));
  return {
    URL: () => url().URL,
    URLSearchParams: () => url().URLSearchParams,
    TextEncoder: () => encoding().TextEncoder,
    TextDecoder: () => encoding().TextDecoder,
    atob: () => encoding().atob,
    btoa: () => encoding().btoa,
    structuredClone: () => (require("./clone") as typeof Clone).structuredClone,
    AbortController: () => abort().AbortController,
    AbortSignal: () => abort().AbortSignal,
    DOMException: () => abort().DOMException,
    Event: () => events().Event,
    EventTarget: () => events().EventTarget,
    CustomEvent: () => events().CustomEvent,
    Blob: () => files().Blob,
    File: () => files().File,
    FormData: () => files().FormData,
    ReadableStream: () => streams().ReadableStream,
    WritableStream: () => streams().WritableStream,
    TransformStream: () => streams().TransformStream,
    ByteLengthQueuingStrategy: () => streams().ByteLengthQueuingStrategy,
    CountQueuingStrategy: () => streams().CountQueuingStrategy,
    CompressionStream: () => streams().CompressionStream,
    DecompressionStream: () => streams().DecompressionStream,
    TextEncoderStream: () => texts().TextEncoderStream,
    TextDecoderStream: () => texts().TextDecoderStream,
    Headers: () => http().Headers,
    Request: () => http().Request,
    Response: () => http().Response,
    fetch: () => http().fetch,
    crypto: () => crypto(),
    performance: () => clock(),
  };
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
