/** fetch and its classes. Bodies are whole byte arrays: the fetcher reads them to the end, within the limits, first. */
import { Headers as BaseHeaders } from "headers-polyfill";
import type { GuestRequest, GuestResponse } from "../../../fetcher/types";
import type { Bridge } from "../bridge";
import type * as abortModule from "./abort";
import type { Encoding } from "./encoding";

type BodyInit = string | ArrayBuffer | ArrayBufferView | { toString(): string } | null | undefined;
type HeadersInit = ConstructorParameters<typeof BaseHeaders>[0];

interface RequestInit {
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit;
  redirect?: GuestRequest["redirect"];
  signal?: abortModule.AbortSignal | null;
}

const EMPTY = new Uint8Array();
let encoding: Encoding;

/** The bytes of a body and the content type it implies. */
function readBody(body: BodyInit): { bytes: Uint8Array; type?: string } {
  if (body === null || body === undefined) return { bytes: EMPTY };
  if (body instanceof ArrayBuffer) return { bytes: new Uint8Array(body.slice(0)) };
  if (ArrayBuffer.isView(body)) return { bytes: new Uint8Array(body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength) as ArrayBuffer) };
  const isParams = Object.prototype.toString.call(body) === "[object URLSearchParams]";
  const type = isParams ? "application/x-www-form-urlencoded;charset=UTF-8" : "text/plain;charset=UTF-8";
  return { bytes: new encoding.TextEncoder().encode(String(body)), type };
}

/** What Request and Response have in common. */
class Body {
  readonly headers: BaseHeaders;
  readonly #bytes: Uint8Array;
  #isUsed = false;

  constructor(body: BodyInit, headers: HeadersInit) {
    const { bytes, type } = readBody(body);
    this.#bytes = bytes;
    this.headers = new BaseHeaders(headers);
    if (type && !this.headers.has("content-type")) this.headers.set("content-type", type);
  }

  get bodyUsed(): boolean {
    return this.#isUsed;
  }

  async bytes(): Promise<Uint8Array> {
    if (this.#isUsed) throw new TypeError("the body has been read already");
    this.#isUsed = true;
    return this.#bytes;
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).slice().buffer as ArrayBuffer;
  }

  async text(): Promise<string> {
    return new encoding.TextDecoder().decode(await this.bytes());
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text()) as unknown;
  }

  protected peek(): Uint8Array {
    if (this.#isUsed) throw new TypeError("the body has been read already");
    return this.#bytes;
  }
}

function bodyOf(method: string, input: unknown, init: RequestInit): BodyInit {
  const inherited = input instanceof Request && input.content().length > 0 ? input.content() : undefined;
  const body = init.body ?? inherited;
  if (body !== undefined && (method === "GET" || method === "HEAD")) throw new TypeError(`a ${method} request has no body`);
  return body;
}

class Request extends Body {
  readonly url: string;
  readonly method: string;
  readonly redirect: GuestRequest["redirect"];
  readonly signal: abortModule.AbortSignal | null;

  constructor(input: unknown, init: RequestInit = {}) {
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

  content(): Uint8Array {
    return this.peek();
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
    const copy = new Response(this.peek(), this);
    const origin = origins.get(this);
    if (origin) origins.set(copy, origin);
    return copy;
  }

  static json(data: unknown, init: ResponseInit = {}): Response {
    const headers = new BaseHeaders(init.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new Response(JSON.stringify(data), { ...init, headers });
  }
}

export function createHttp(bridge: Bridge, textAndBytes: Encoding, { DOMException }: typeof abortModule) {
  encoding = textAndBytes;
  const { parse } = JSON;

  async function exchange(request: Request): Promise<Response> {
    const { url, method, redirect, headers } = request;
    const bytes = request.content();
    const body = bytes.length > 0 ? (bytes.slice().buffer as ArrayBuffer) : undefined;
    const reply = await bridge.call("fetch", { url, method, redirect, headers: [...headers.entries()] }, body);
    const { status, statusText, ...answer } = parse(reply.value) as GuestResponse;
    const response = new Response(reply.body, { status, statusText });
    for (const [name, value] of answer.headers) response.headers.append(name, value);
    origins.set(response, answer);
    return response;
  }

  function fetch(input: unknown, init?: RequestInit): Promise<Response> {
    return new Promise((resolve, reject) => {
      const request = new Request(input, init);
      const { signal } = request;
      const stop = (): void => reject(signal?.reason ?? new DOMException("The operation was aborted", "AbortError"));
      if (signal?.aborted) return stop();
      signal?.addEventListener("abort", stop, { once: true });
      exchange(request).then(resolve, reject);
    });
  }

  return { fetch, Headers: BaseHeaders, Request, Response };
}
