/** The web's globals, each made from its library when it is first read: what is required here, the bundler wraps and runs only then. */
import type { Bridge, Host } from "../bridge";
import type * as Abort from "./abort";
import type * as Clone from "./clone";
import type * as Crypto from "./crypto";
import type * as Encoding from "./encoding";
import type * as Http from "./http";
import type * as Inspect from "./inspect";
import type * as Url from "./url";

export function webGlobals(bridge: Bridge, random: Host["random"], convert: Host["convert"]): Record<string, () => unknown> {
  const url = () => require("./url") as typeof Url;
  const encoding = once(() => (require("./encoding") as typeof Encoding).createEncoding(convert));
  const abort = () => require("./abort") as typeof Abort;
  const http = once(() => (require("./http") as typeof Http).createHttp(bridge, encoding(), abort()));
  const crypto = once(() => (require("./crypto") as typeof Crypto).createCrypto(random, encoding()));
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
    Headers: () => http().Headers,
    Request: () => http().Request,
    Response: () => http().Response,
    fetch: () => http().fetch,
    crypto: () => crypto(),
    performance: () => clock(),
  };
}

/** What shows values that are no text. */
export const inspector = once(() => (require("./inspect") as typeof Inspect).inspect);

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** Whole milliseconds: nothing finer is given to code that may want to time its neighbours. */
function clock(): object {
  const { now } = Date;
  const timeOrigin = now();
  return Object.freeze({ timeOrigin, now: () => now() - timeOrigin });
}
