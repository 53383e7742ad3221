/**
 * The TLS endpoint: forwards requests to the relayer unchanged, except for hop-by-hop and forwarding headers. Neither
 * stores nor logs their content.
 */
import { randomUUID } from "node:crypto";
import {
  createServer as createHttpServer,
  request,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import { KeywrightError } from "../protocol/errors";
import { PROBLEM_TYPE, problemOf } from "../protocol/http/problem";
import { CountedRequest } from "../protocol/pieces";
import type { Challenges } from "./certificates";
import type { ClientAddresses } from "./proxyProtocol";

/** Headers of a single connection, which are not forwarded (RFC 9110, 7.6.1). */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
/** Whatever a Connection header names: without them a request's body would be taken for the next request. */
const END_TO_END = ["content-length", "host"];
const CHALLENGE = /^\/\.well-known\/acme-challenge\/([A-Za-z0-9_-]{1,256})$/;
/** A run may take fifteen minutes, and wait in the queue before. */
const ANSWER_TIMEOUT_MS = 20 * 60_000;
const HEADERS_TIMEOUT_MS = 10_000;
const HANDSHAKE_TIMEOUT_MS = 10_000;
/** Requests that a connection may send before the one before them is answered. */
const MAX_PIPELINED = 8;

export function createTlsEndpoint(
  upstream: URL,
  credentials: { key: string; cert: string },
  addresses: ClientAddresses,
): HttpsServer {
  const options = {
    ...credentials,
    IncomingMessage: CountedRequest,
    minVersion: "TLSv1.2" as const,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 60_000,
  };
  const inOrder = oneAtATime();
  return createHttpsServer(options, (incoming, answer) =>
    inOrder(incoming.socket, answer, () => forwardRequest(upstream, incoming, answer, addresses.of(incoming.socket))),
  );
}

/**
 * Forwards a connection's next request when the one before is answered: else one client could open any number of
 * connections to the relayer. Too many that wait end their connection.
 */
function oneAtATime(): (socket: Socket, answer: ServerResponse, forward: () => void) => void {
  const waiting = new WeakMap<Socket, (() => void)[]>();
  return (socket, answer, forward) => {
    if (socket.destroyed) return;
    const begin = (): void => {
      answer.once("close", () => {
        const next = waiting.get(socket)?.shift();
        if (next === undefined || socket.destroyed) waiting.delete(socket);
        else next();
      });
      forward();
    };
    const others = waiting.get(socket);
    if (others !== undefined && others.length >= MAX_PIPELINED) socket.destroy();
    else if (others !== undefined) others.push(begin);
    else {
      waiting.set(socket, []);
      begin();
    }
  };
}

/** Serves challenges of the certificate authority; redirects everything else to https. */
export function createHttpEndpoint(domain: string, challenges: Challenges): Server {
  const options = { IncomingMessage: CountedRequest, headersTimeout: HEADERS_TIMEOUT_MS };
  return createHttpServer(options, (incoming, answer) => {
    const token = CHALLENGE.exec(incoming.url ?? "")?.[1];
    const known = token === undefined ? undefined : challenges.get(token);
    if (known !== undefined)
      return void answer.writeHead(200, { "content-type": "application/octet-stream" }).end(known);
    if (token !== undefined) return void answer.writeHead(404).end();
    answer.writeHead(308, { location: `https://${domain}${pathOf(incoming)}` }).end();
  });
}

function forwardRequest(upstream: URL, incoming: IncomingMessage, answer: ServerResponse, client: string): void {
  const outgoing = request({
    host: upstream.hostname,
    port: upstream.port === "" ? 80 : upstream.port,
    method: incoming.method,
    path: pathOf(incoming),
    headers: headersOf(incoming, client),
    timeout: ANSWER_TIMEOUT_MS,
  });
  outgoing.once("response", (response) => {
    answer.writeHead(response.statusCode ?? 502, {
      ...withoutHops(response.headers),
      "strict-transport-security": "max-age=31536000",
    });
    response.pipe(answer);
    response.once("error", () => answer.destroy());
  });
  outgoing.once("timeout", () => outgoing.destroy());
  outgoing.once("error", () => (answer.headersSent ? answer.destroy() : refuse(incoming, answer)));
  answer.once("close", () => {
    // Of what was answered before it was read: the connection's next request comes after it. The pipe would pause it.
    incoming.unpipe(outgoing);
    outgoing.destroy();
    incoming.resume();
  });
  incoming.pipe(outgoing);
}

/** Only the path: an absolute URL would let a client choose the request's target. */
const pathOf = ({ url = "/" }: IncomingMessage): string => (url.startsWith("/") ? url : "/");

function headersOf(incoming: IncomingMessage, client: string): Record<string, string | string[] | undefined> {
  const before = incoming.headers["x-forwarded-for"];
  return {
    ...withoutHops(incoming.headers),
    // Of its own accord Node sends the body of a GET without any framing.
    ...(incoming.headers["transfer-encoding"] === undefined ? {} : { "transfer-encoding": "chunked" }),
    "x-forwarded-for": before === undefined ? client : `${String(before)}, ${client}`,
    "x-forwarded-proto": "https",
  };
}

function withoutHops(headers: IncomingMessage["headers"]): Record<string, string | string[] | undefined> {
  const named = (headers.connection ?? "").split(",").map((name) => name.trim().toLowerCase());
  const hops = new Set([...HOP_BY_HOP, ...named.filter((name) => !END_TO_END.includes(name))]);
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hops.has(name)));
}

/** As the relayer answers: with a request id, for pages of any origin. */
function refuse({ headers: { host = "" } }: IncomingMessage, answer: ServerResponse): void {
  const requestId = randomUUID();
  const error = new KeywrightError("not_ready", "The relayer cannot be reached at the moment.");
  answer
    .writeHead(error.status, {
      "content-type": PROBLEM_TYPE,
      "cache-control": "no-store",
      "retry-after": "5",
      "x-request-id": requestId,
      "access-control-allow-origin": "*",
      "access-control-expose-headers": "X-Request-Id,Retry-After",
    })
    .end(JSON.stringify(problemOf(error, requestId, `https://${host}`)));
}
