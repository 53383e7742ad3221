/**
 * HTTP calls: time-outs, retries where they are safe, errors as typed codes. Independent of the routes. Works wherever
 * `fetch` does.
 */
import { ClientError, withFacts } from "./errors";
import { problemOf } from "./problem";
import { parseJson } from "../protocol/json";

export interface TransportOptions {
  /** Origin of the service, for example `https://keys.example`; the prefix `/core/v1` is added. */
  readonly baseUrl: string;
  /** How long one attempt may take. Default 90,000 ms (a run's own `timeout_ms` raises it for that run). */
  readonly timeoutMs?: number;
  /** How often a safely repeatable call is retried. Default 3. */
  readonly retries?: number;
  /**
   * The longest pause before a retry; a longer `Retry-After` ends the call with the service's error. Default 20,000 ms.
   */
  readonly maxRetryDelayMs?: number;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Allows http to other machines: everybody on the way can read the keys that are sent. Default false. */
  readonly insecure?: boolean;
}

/** Options of a single call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  /**
   * Default: fresh for every logical call and the same for its retries. Set it to repeat a call safely after a restart.
   * Not for what a wallet signs anew each time (`mintPkp`, `mintUsageKey`, `createPkp`, `createUsageKey`): its body is
   * another one then, and refused as `idempotency_conflict`. `convertAccount` looks whether it is done.
   */
  readonly idempotencyKey?: string;
  readonly correlationId?: string;
}

export interface HttpCall {
  readonly method: "GET" | "POST";
  /** From the origin, with the prefix. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | bigint | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** True for a POST that changes something: it gets an idempotency key. */
  readonly mutates?: boolean;
  /** The answer is text, not JSON. */
  readonly text?: boolean;
}

export interface HttpAnswer {
  readonly body: unknown;
  readonly headers: Headers;
}

export interface Transport {
  call(call: HttpCall, options?: CallOptions): Promise<HttpAnswer>;
}

export function createTransport(options: TransportOptions): Transport {
  const settings = {
    origin: originOf(options.baseUrl, options.insecure === true),
    timeoutMs: options.timeoutMs ?? 90_000,
    retries: options.retries ?? 3,
    maxRetryDelayMs: options.maxRetryDelayMs ?? 20_000,
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
  };
  return { call: (call, callOptions = {}) => callWithRetries(settings, call, callOptions) };
}

interface Settings {
  readonly origin: string;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly maxRetryDelayMs: number;
  readonly fetch: typeof globalThis.fetch;
}

function originOf(baseUrl: string, insecure: boolean): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== "" ||
    url.search !== "" ||
    url.hash !== ""
  ) {
    throw new ClientError(
      "invalid_argument",
      "baseUrl must be the service's http(s) origin, for example https://keys.example.",
    );
  }
  if (url.protocol === "http:" && !insecure && !isThisMachine(url.hostname)) {
    throw new ClientError(
      "invalid_argument",
      `Over http, everybody on the way to ${url.hostname} could read the keys: use https, or insecure (--insecure).`,
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** URLs state IPv4 addresses in one form. */
export const isThisMachine = (host: string): boolean => /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(host);

/**
 * Every call is safe to repeat: a GET has no effect, a mutation carries one idempotency key for all its attempts, and
 * the other POSTs only compute. Retried are errors the service marks retryable and missing answers; permanent refusals
 * are not. A refusal after a missing answer says only that this attempt had no effect: it may come before the service
 * looks whether the call is known.
 */
async function callWithRetries(settings: Settings, call: HttpCall, options: CallOptions): Promise<HttpAnswer> {
  let request = requestFor(settings, call, options);
  let isAnswerLost = false;
  const refusal = (error: unknown): unknown =>
    isAnswerLost && error instanceof ClientError ? withFacts(error, { may_have_taken_effect: true }) : error;
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await callOnce(settings, request, options);
    } catch (error) {
      // An answer was lost, and its secret with it: the service derives it once more.
      if (error instanceof ClientError && error.code === "secret_lost" && !request.url.endsWith(SECRET_AGAIN)) {
        request = { ...request, url: request.url + SECRET_AGAIN };
        isAnswerLost = true;
        continue;
      }
      if (!(error instanceof ClientError) || attempt >= settings.retries || !mayRetry(error, attempt))
        throw refusal(error);
      const delayMs = retryDelayMs(error, attempt);
      if (delayMs > settings.maxRetryDelayMs) throw refusal(error);
      isAnswerLost ||= call.mutates === true && isUnanswered(error);
      await pause(delayMs, options.signal).catch((aborted: unknown) => Promise.reject(refusal(aborted) as Error));
    }
  }
}

/** Whether the service, or what is in front of it, left open what became of the attempt. */
const isUnanswered = ({ code, status }: ClientError): boolean =>
  status === 504 || ["network_failed", "client_timed_out", "unexpected_answer", "not_ready"].includes(code);

const SECRET_AGAIN = "?secret=again";

/** This call's first attempt can still be running when a retry arrives: then wait as well. */
function mayRetry(error: ClientError, attempt: number): boolean {
  return error.retryable || (error.code === "idempotency_in_progress" && attempt > 0);
}

function retryDelayMs(error: ClientError, attempt: number): number {
  if (error.retryAfterSeconds !== undefined) return error.retryAfterSeconds * 1000;
  return 250 * 2 ** attempt * (0.5 + Math.random());
}

interface Request {
  readonly url: string;
  readonly init: RequestInit;
  readonly isText: boolean;
}

function requestFor(settings: Settings, call: HttpCall, options: CallOptions): Request {
  const headers: Record<string, string> = {
    accept: call.text === true ? "*/*" : "application/json",
    ...call.headers,
  };
  if (call.body !== undefined) headers["content-type"] = "application/json";
  if (call.mutates === true) headers["idempotency-key"] = options.idempotencyKey ?? randomToken();
  if (options.correlationId !== undefined) headers["x-correlation-id"] = options.correlationId;
  requireHeaderText(headers);
  const init: RequestInit = {
    method: call.method,
    headers,
    body: call.body === undefined ? null : JSON.stringify(call.body),
    // A redirect would send the key to its target.
    redirect: "error",
    credentials: "omit",
  };
  return { url: settings.origin + call.path + queryText(call.query), init, isText: call.text === true };
}

/** Checked here, since fetch's error repeats an invalid value, and the value may be a token. */
function requireHeaderText(headers: Readonly<Record<string, string>>): void {
  const bad = Object.keys(headers).find((name) => !/^[\x20-\x7e]*$/.test(headers[name] ?? ""));
  if (bad !== undefined)
    throw new ClientError("invalid_argument", `The value for ${bad} contains characters that a header cannot have.`);
}

function queryText(query: HttpCall["query"]): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as [string, string]],
  );
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs).toString()}`;
}

/** 128 random bits. Not `crypto.randomUUID`, which browsers withhold from pages served over plain http. */
function randomToken(): string {
  return Array.from(globalThis.crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

async function callOnce(settings: Settings, request: Request, options: CallOptions): Promise<HttpAnswer> {
  const deadline = new AbortController();
  // Cleared with the call: `AbortSignal.timeout` would stay in memory until the full time-out has passed.
  const timer = setTimeout(() => deadline.abort(), options.timeoutMs ?? settings.timeoutMs);
  const signal = options.signal === undefined ? deadline.signal : AbortSignal.any([deadline.signal, options.signal]);
  let response: Response;
  let text: string;
  try {
    response = await settings.fetch(request.url, { ...request.init, signal });
    text = await response.text();
  } catch (cause) {
    throw failureOf(cause, options.signal, deadline.signal);
  } finally {
    clearTimeout(timer);
  }
  if (request.isText && response.ok) return { body: text, headers: response.headers };
  return readAnswer(response, text);
}

function failureOf(cause: unknown, callers: AbortSignal | undefined, deadline: AbortSignal): ClientError {
  if (callers?.aborted === true) return new ClientError("aborted", "The call was aborted by its caller.", { cause });
  if (deadline.aborted)
    return new ClientError("client_timed_out", "The service did not answer in time.", { cause, retryable: true });
  return new ClientError("network_failed", "The service could not be reached.", { cause, retryable: true });
}

function readAnswer(response: Response, text: string): HttpAnswer {
  const body = parseJson(text);
  if (!response.ok) throw problemOf(response, body);
  if (body === undefined) {
    throw new ClientError("unexpected_answer", "The answer is not JSON: is baseUrl the service's origin?", {
      status: response.status,
    });
  }
  requireSecret(body, response);
  return { body, headers: response.headers };
}

/** A replayed answer of a minting route lacks its secret: it must not count as a success. */
function requireSecret(body: unknown, response: Response): void {
  if (
    typeof body !== "object" ||
    body === null ||
    !("secret_returned_before" in body) ||
    body.secret_returned_before !== true
  )
    return;
  throw new ClientError(
    "secret_lost",
    "The key was created, but the answer with it was lost. Revoke it by its api_key_hash and create another.",
    {
      status: response.status,
      facts: { ...body },
      ...requestIdOf(response),
    },
  );
}

export function requestIdOf(response: Response): { requestId?: string } {
  const requestId = response.headers.get("x-request-id");
  return requestId === null ? {} : { requestId };
}

function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(new ClientError("aborted", "The call was aborted by its caller."));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, delayMs);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
