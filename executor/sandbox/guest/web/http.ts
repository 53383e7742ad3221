/**
 * fetch and its classes. Bodies of answers are complete byte arrays: the fetcher first reads them to the end, within
 * the limits.
 */
import { Headers as BaseHeaders } from "headers-polyfill";
import type { ReadableStream } from "web-streams-polyfill";
import type { GuestRequest, GuestResponse } from "../../../fetcher/types";
import type { Bridge } from "../bridge";
import type * as abortModule from "./abort";
import type { Encoding } from "./encoding";
import type * as filesModule from "./files";

type Blob = InstanceType<typeof filesModule.Blob>;
type BodyInit =
  string | ArrayBuffer | ArrayBufferView | Blob | ReadableStream | { toString(): string } | null | undefined;
type HeadersInit = ConstructorParameters<typeof BaseHeaders>[0];

const HEADER_NAME = /^[a-z0-9#$%&'*+\-.^_`|~]+$/i;

/** As on the web a value becomes text without blanks around it; what the library would leave out is refused. */
function sendable(name: unknown, value: unknown): [name: string, value: string] {
  const [key, text] = [String(name), String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "")];
  if (!HEADER_NAME.test(key)) throw new TypeError(`${JSON.stringify(key)} cannot be the name of a header`);
  if (/[\0\r\n\u0100-\uffff]/.test(text) || text !== text.trim())
    throw new TypeError(`the header ${key} has a value that cannot be sent`);
  return [key, text];
}

function pairsOf(init: unknown): Iterable<Iterable<unknown>> {
  if (init === undefined || init === null) return [];
  if (typeof init !== "object") throw new TypeError("headers are an object or a list of pairs");
  return Symbol.iterator in init ? (init as Iterable<Iterable<unknown>>) : Object.entries(init);
}

/** The library leaves out values that are not text, and knows no iterables but lists. */
class Headers extends BaseHeaders {
  constructor(init?: unknown) {
    super();
    for (const pair of pairsOf(init)) {
      const parts = [...pair];
      if (parts.length !== 2) throw new TypeError("a header is a pair of a name and a value");
      this.append(parts[0], parts[1]);
    }
  }

  override append(name: unknown, value: unknown): void {
    super.append(...sendable(name, value));
  }

  override set(name: unknown, value: unknown): void {
    super.set(...sendable(name, value));
  }
}

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit;
  redirect?: GuestRequest["redirect"];
  signal?: abortModule.AbortSignal | null;
}

/** The bytes of a body, or an object that they are read from on demand. */
type Source = Uint8Array | Blob | ReadableStream;

const EMPTY = new Uint8Array();
let encoding: Encoding;
/** Loaded when a body is, or is requested as, a form or a blob. */
let files: () => typeof filesModule;

const kindOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);
const isStream = (source: unknown): source is ReadableStream => kindOf(source) === "ReadableStream";

/** A body and the content type it implies. */
function readBody(body: BodyInit): { source: Source; type?: string } {
  if (body === null || body === undefined) return { source: EMPTY };
  if (body instanceof ArrayBuffer) return { source: new Uint8Array(body.slice(0)) };
  if (ArrayBuffer.isView(body))
    return {
      source: new Uint8Array(body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength) as ArrayBuffer),
    };
  const kind = kindOf(body);
  if (isStream(body)) return { source: body };
  if (kind === "FormData") return typed(files().multipart(body));
  if (kind === "Blob" || kind === "File") return typed(body as Blob);
  const type =
    kind === "URLSearchParams" ? "application/x-www-form-urlencoded;charset=UTF-8" : "text/plain;charset=UTF-8";
  return { source: new encoding.TextEncoder().encode(String(body)), type };
}

const typed = (blob: Blob): { source: Blob; type?: string } => ({
  source: blob,
  ...(blob.type !== "" && { type: blob.type }),
});

async function wholeOf(source: Source): Promise<Uint8Array> {
  if (source instanceof Uint8Array) return source;
  if (!isStream(source)) return new Uint8Array(await source.arrayBuffer());
  const chunks: Uint8Array[] = [];
  const reader = source.getReader();
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    if (!(value instanceof Uint8Array)) throw new TypeError("a body's stream must give bytes");
    chunks.push(value);
  }
  const all = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  chunks.reduce((at, chunk) => (all.set(chunk, at), at + chunk.length), 0);
  return all;
}

/** Common to Request and Response. */
class Body {
  readonly headers: Headers;
  #source: Source;
  readonly #isNull: boolean;
  #isUsed = false;

  constructor(body: BodyInit, headers: HeadersInit) {
    const { source, type } = readBody(body);
    this.#source = source;
    this.#isNull = body === null || body === undefined;
    this.headers = new Headers(headers);
    if (type && !this.headers.has("content-type")) this.headers.set("content-type", type);
  }

  get bodyUsed(): boolean {
    return this.#isUsed || (isStream(this.#source) && this.#source.locked);
  }

  get body(): ReadableStream | null {
    if (this.#isNull) return null;
    if (!isStream(this.#source)) {
      const blob = this.#source instanceof Uint8Array ? new (files().Blob)([this.#source]) : this.#source;
      this.#source = blob.stream() as unknown as ReadableStream;
    }
    return this.#source;
  }

  async bytes(): Promise<Uint8Array> {
    this.#requireUnused();
    this.#isUsed = true;
    return wholeOf(this.#source);
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).slice().buffer as ArrayBuffer;
  }

  async blob(): Promise<Blob> {
    return new (files().Blob)([await this.bytes()], { type: this.headers.get("content-type") ?? "" });
  }

  async text(): Promise<string> {
    return new encoding.TextDecoder().decode(await this.bytes());
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text()) as unknown;
  }

  /** The body for a copy; this one stays readable. */
  share(): Source | null {
    this.#requireUnused();
    if (this.#isNull || !isStream(this.#source)) return this.#isNull ? null : this.#source;
    const [mine, other] = this.#source.tee();
    this.#source = mine;
    return other;
  }

  #requireUnused(): void {
    if (this.bodyUsed) throw new TypeError("the body has been read already");
  }
}

function bodyOf(method: string, input: unknown, init: RequestInit): BodyInit {
  const body = init.body ?? (input instanceof Request ? input.share() : null);
  if (body !== null && (method === "GET" || method === "HEAD")) throw new TypeError(`a ${method} request has no body`);
  return body;
}

class Request extends Body {
  readonly url: string;
  readonly method: string;
  readonly redirect: GuestRequest["redirect"];
  readonly signal: abortModule.AbortSignal | null;

  constructor(input: unknown, options?: RequestInit | null) {
    const init = options ?? {};
    const base: Partial<Request> = input instanceof Request ? input : { url: String(input) };
    const method = String(init.method ?? base.method ?? "GET").toUpperCase();
    super(bodyOf(method, input, init), init.headers ?? base.headers);
    this.url = String(base.url);
    this.method = method;
    this.redirect = init.redirect ?? base.redirect ?? "follow";
    this.signal = init.signal ?? base.signal ?? null;
  }

  clone(): Request {
    return new Request(this);
  }
}

interface ResponseInit {
  status?: number;
  statusText?: string;
  headers?: HeadersInit;
}

const origins = new WeakMap<object, Pick<GuestResponse, "url" | "redirected">>();

class Response extends Body {
  readonly status: number;
  readonly statusText: string;
  readonly type = "basic";

  constructor(body?: BodyInit, { status = 200, statusText = "", headers }: ResponseInit = {}) {
    super(body, headers);
    this.status = status;
    this.statusText = statusText;
  }

  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  get url(): string {
    return origins.get(this)?.url ?? "";
  }

  get redirected(): boolean {
    return origins.get(this)?.redirected ?? false;
  }

  clone(): Response {
    const copy = new Response(this.share(), this);
    const origin = origins.get(this);
    if (origin) origins.set(copy, origin);
    return copy;
  }

  static json(data: unknown, init: ResponseInit = {}): Response {
    const headers = new Headers(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(JSON.stringify(data), { ...init, headers });
  }
}

/** An odd header of an answer is left out: it fails no fetch. */
function receive(headers: Headers, name: string, value: string): void {
  try {
    headers.append(name, value.trim());
  } catch {
    // As if it had not come.
  }
}

async function copyOf(source: Source): Promise<ArrayBuffer | undefined> {
  const bytes = await wholeOf(source);
  return bytes.length > 0 ? (bytes.slice().buffer as ArrayBuffer) : undefined;
}

export function createHttp(bridge: Bridge, textAndBytes: Encoding, blobsAndForms: () => typeof filesModule) {
  encoding = textAndBytes;
  files = blobsAndForms;
  const { parse } = JSON;

  async function exchange(request: Request): Promise<Response> {
    const { url, method, redirect, headers } = request;
    const source = request.share();
    // Without a body the request is sent synchronously, so that a flood of requests is counted as it is made.
    const body = source === null ? undefined : await copyOf(source);
    if (request.signal?.aborted) throw request.signal.reason;
    const reply = await bridge.call("fetch", { url, method, redirect, headers: [...headers.entries()] }, body);
    const { status, statusText, ...answer } = parse(reply.value) as GuestResponse;
    const response = new Response(reply.body, { status, statusText });
    for (const [name, value] of answer.headers) receive(response.headers, name, value);
    origins.set(response, answer);
    return response;
  }

  function fetch(input: unknown, init?: RequestInit | null): Promise<Response> {
    return new Promise((resolve, reject) => {
      const request = new Request(input, init);
      const { signal } = request;
      const stop = (): void => reject(signal?.reason);
      if (signal?.aborted) return stop();
      signal?.addEventListener("abort", stop, { once: true });
      exchange(request).then(resolve, reject);
    });
  }

  return { fetch, Headers, Request, Response };
}
