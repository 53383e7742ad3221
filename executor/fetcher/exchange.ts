/**
 * One HTTP exchange under the address rules. Each hop's name is resolved once, all its addresses are checked, and the
 * connection uses exactly those; a redirect is a hop of its own. Bodies over the cap, measured after decompression, are
 * refused.
 */
import { lookup as dnsLookup } from "node:dns/promises";
import type { LookupAddress } from "node:dns";
import { isIP } from "node:net";
import { Agent, fetch, type Dispatcher, type Response } from "undici";
import { isGlobalUnicast } from "./addresses";
import type { Lookup } from "./names";
import { aborted } from "../../protocol/within";
import { ACCEPTED_CODINGS, PieceCounter, type TakeTurn } from "./pieces";
import { FetchFailed, type Exchanged, type GuestRequest } from "./types";

export interface Rules {
  /** Hosts, or host:port, that may be reached regardless of address and port. */
  allowHosts: readonly string[];
  ports: readonly number[];
  /** Resolves names; default the system's resolver. */
  resolve?: Lookup;
  /** Awaited before more than the first bytes of an answer are read; default no wait. */
  grow?: () => Promise<void>;
  /** Where many answers are read at once: when one of many pieces is read on; default at once. */
  takeTurn?: TakeTurn;
}

/** Answer size up to which a fetch does not count against the memory shared by all fetches. */
export const FREE_ANSWER_BYTES = 256 * 1_024;
const MAX_REDIRECTS = 10;
const MAX_HEADER_BYTES = 16_384;
const MAX_URL_CHARS = 16_384;
/** Headers that the fetcher or the connection sets. */
const DROPPED = new Set(
  "host connection content-length transfer-encoding te trailer upgrade keep-alive expect accept-encoding".split(" "),
);
const DROPPED_PREFIX = /^(proxy|sec)-/i;
/** The only headers sent on a redirect to another origin. */
const HARMLESS = new Set(["accept", "accept-encoding", "accept-language", "content-type", "user-agent"]);
/** What this process lacks is no failure of the host. */
const OURS: ReadonlySet<string | undefined> = new Set(["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EADDRNOTAVAIL"]);
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Throws FetchFailed. */
export async function exchange(
  request: GuestRequest,
  body: Buffer,
  rules: Rules,
  signal?: AbortSignal,
): Promise<Exchanged> {
  const host = hostOf(request.url);
  const ended = new AbortController();
  const end = (code: FetchFailed["code"], message: string): void => ended.abort(new FetchFailed(code, message));
  // Cleared with the fetch: `AbortSignal.timeout` would stay in memory until the full time-out has passed.
  const timer = setTimeout(
    () => end("timed_out", `no answer from ${host} within ${request.timeoutMs} ms`),
    request.timeoutMs,
  );
  const onRefused = (why: string): void => end("limit_exceeded", `the answer of ${host} ${why}`);
  const either = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal;
  try {
    return await Promise.race([follow(request, body, { ...rules, onRefused }, either), aborted(either)]);
  } catch (error) {
    if (error instanceof FetchFailed) throw error;
    if (ended.signal.aborted) throw ended.signal.reason;
    throw new FetchFailed(OURS.has(codeOf(error)) ? "unavailable" : "failed", `${host}: ${reasonOf(error)}`);
  } finally {
    clearTimeout(timer);
  }
}

type ExchangeRules = Rules & { readonly onRefused: (why: string) => void };

interface Hop {
  url: URL;
  method: string;
  headers: [string, string][];
  body: Buffer;
}

async function follow(
  request: GuestRequest,
  body: Buffer,
  rules: ExchangeRules,
  signal: AbortSignal,
): Promise<Exchanged> {
  let hop: Hop = {
    url: parseUrl(request.url),
    method: request.method,
    headers: [
      ...request.headers.filter(([name]) => !DROPPED.has(name.toLowerCase()) && !DROPPED_PREFIX.test(name)),
      ["accept-encoding", ACCEPTED_CODINGS],
    ],
    body,
  };
  for (let redirects = 0; ; redirects++) {
    const agent = await pinnedAgent(hop.url, rules, signal);
    try {
      const answer = await fetch(hop.url, {
        method: hop.method,
        headers: hop.headers,
        body: hop.body.length > 0 ? hop.body : undefined,
        redirect: "manual",
        dispatcher: agent,
        signal,
      });
      const location = REDIRECTS.has(answer.status) ? answer.headers.get("location") : null;
      if (location === null || request.redirect === "manual")
        return await collect(answer, { url: hop.url, redirected: redirects > 0 }, request, rules.grow);
      if (request.redirect === "error") throw new FetchFailed("refused", `${hop.url.host} answered with a redirect`);
      if (redirects === MAX_REDIRECTS) throw new FetchFailed("refused", `more than ${MAX_REDIRECTS} redirects`);
      hop = nextHop(hop, answer.status, parseUrl(location, hop.url));
    } finally {
      // Connections are never shared between requests.
      void agent.destroy();
    }
  }
}

function nextHop(hop: Hop, status: number, url: URL): Hop {
  if (hop.url.protocol === "https:" && url.protocol === "http:")
    throw new FetchFailed("refused", `${hop.url.host} redirects from https to http`);
  const dropsBody =
    (status === 303 && hop.method !== "HEAD") || ((status === 301 || status === 302) && hop.method === "POST");
  const isSameOrigin = url.origin === hop.url.origin;
  const headers = hop.headers
    .filter(([name]) => isSameOrigin || HARMLESS.has(name.toLowerCase()))
    .filter(([name]) => !dropsBody || !/^content-/i.test(name));
  return dropsBody ? { url, method: "GET", headers, body: Buffer.alloc(0) } : { ...hop, url, headers };
}

function parseUrl(text: string, base?: URL): URL {
  if (text.length > MAX_URL_CHARS || !URL.canParse(text, base?.href))
    throw new FetchFailed("refused", `${text.slice(0, 200)} is not a URL`);
  const url = new URL(text, base);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new FetchFailed("refused", `${url.protocol} is not fetched, only http: and https:`);
  if (url.username !== "" || url.password !== "")
    throw new FetchFailed("refused", "a URL with a user name or password is not fetched; send an Authorization header");
  return url;
}

/** An agent that connects this URL's host only to the checked addresses. */
async function pinnedAgent(url: URL, rules: ExchangeRules, signal: AbortSignal): Promise<Dispatcher> {
  const addresses = await checkedAddresses(url, rules, signal);
  signal.throwIfAborted();
  const agent = new Agent({
    connect: {
      timeout: 10_000,
      lookup: (_host, options, callback) => {
        const [first] = addresses;
        if (options.all) callback(null, addresses);
        else callback(null, first?.address ?? "", first?.family);
      },
    },
    maxHeaderSize: MAX_HEADER_BYTES,
    pipelining: 0,
  });
  return agent.compose((dispatch) => (options, handler) => {
    const reading = { takeTurn: rules.takeTurn, hasBody: options.method !== "HEAD" };
    return dispatch(options, new PieceCounter(handler, rules.onRefused, reading));
  });
}

/** Throws FetchFailed when a guest may not reach the URL because of its port or an address of its host. */
export async function requireReachable(text: string, rules: Rules, signal: AbortSignal): Promise<void> {
  await checkedAddresses(parseUrl(text), rules, signal);
}

async function checkedAddresses(url: URL, rules: Rules, signal: AbortSignal): Promise<LookupAddress[]> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const isAllowed = [url.hostname, host, `${url.hostname}:${port}`].some((name) => rules.allowHosts.includes(name));
  if (!isAllowed && !rules.ports.includes(port))
    throw new FetchFailed("refused", `port ${port} is not fetched, only ${rules.ports.join(", ")}`);
  const addresses = isIP(host)
    ? [{ address: host, family: isIP(host) }]
    : await (rules.resolve ?? resolve)(host, signal);
  if (addresses.length === 0) throw new FetchFailed("failed", `${host} has no address`);
  const hidden = isAllowed ? undefined : addresses.find(({ address }) => !isGlobalUnicast(address));
  if (hidden) throw new FetchFailed("refused", `${host} is not a public address`);
  return addresses;
}

const resolve: Lookup = (host) => dnsLookup(host, { all: true, verbatim: true });

async function collect(
  answer: Response,
  { url, redirected }: { url: URL; redirected: boolean },
  { maxBytes, cut = false }: Pick<GuestRequest, "maxBytes" | "cut">,
  grow: Rules["grow"],
): Promise<Exchanged> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  let hasGrown = grow === undefined;
  for await (const chunk of (answer.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (!hasGrown && length > FREE_ANSWER_BYTES) {
      hasGrown = true;
      await grow?.();
    }
    if (length > maxBytes && !cut)
      throw new FetchFailed("too_large", `the answer of ${url.host} is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
    if (length >= maxBytes && cut) break;
  }
  const headers = [...answer.headers].filter(([name]) => name !== "content-encoding" && name !== "content-length");
  return {
    response: { url: url.href, redirected, status: answer.status, statusText: answer.statusText, headers },
    body: Buffer.concat(chunks),
  };
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "the host";
}

/** A short reason for the author of the action: network error codes, never internal addresses. */
function reasonOf(error: unknown): string {
  const code = codeOf(error);
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "the name cannot be resolved";
  if (code === "ECONNREFUSED") return "the connection was refused";
  return code ?? "the exchange failed";
}

function codeOf(error: unknown): string | undefined {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return (cause as NodeJS.ErrnoException | undefined)?.code;
}
