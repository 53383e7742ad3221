/**
 * `keywright mcp --http`: the same server over the protocol's streamable HTTP, on this machine. It keeps no key: each
 * request brings its own, so neither other users of the machine nor pages of a browser can use somebody else's.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { ClientError, WrongUse } from "../errors";
import { isKeyText } from "../keyText";
import { failureOf } from "./failure";
import { parseJson } from "../../protocol/json";

/** A run may carry 16 MiB of code. */
const MAX_BYTES = 20 * 1_024 * 1_024;
const PATH = "/mcp";

/** Answers until the process is stopped. @param serverFor refuses a key that an agent must not have */
export async function serveHttp(
  port: number,
  serverFor: (apiKey: string) => Promise<Server>,
  say: (text: string) => void,
): Promise<void> {
  const server = createServer((request, response) => {
    answer(request, response, serverFor).catch((error: unknown) => refuse(response, 500, failureOf(error).message));
  });
  await new Promise<void>((listening, failed) => {
    server.once("error", failed);
    server.listen(port, "127.0.0.1", listening);
  });
  say(`http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}\n`);
  await new Promise((stopped) => server.once("close", stopped));
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  serverFor: (apiKey: string) => Promise<Server>,
): Promise<void> {
  if (new URL(request.url ?? "/", "http://127.0.0.1").pathname !== PATH)
    return refuse(response, 404, `The server is at ${PATH}.`);
  // Stateless: no stream of the server's own, and no session to end.
  if (request.method !== "POST") return refuse(response, 405, "Only POST is served.");
  const apiKey = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
  if (!isKeyText(apiKey)) return refuse(response, 401, "Send a usage key made for the agent: Authorization: Bearer …");
  const server = await serverFor(apiKey).catch(refusalOf);
  if ("status" in server) return refuse(response, server.status, server.message, server.retryAfterSeconds);
  const body = await bodyOf(request);
  if (body === undefined) return refuse(response, 413, `A body has at most ${MAX_BYTES} bytes.`);
  const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
  response.once("close", () => void server.close());
  await server.connect(transport as Parameters<Server["connect"]>[0]);
  await transport.handleRequest(request, response, parseJson(body));
}

interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly retryAfterSeconds: number | undefined;
}

/** Why a key gets no server. Only what is wrong with the key itself makes a client ask its user for another one. */
function refusalOf(error: unknown): Refusal {
  const { message } = failureOf(error);
  if (error instanceof WrongUse) return { status: 403, message, retryAfterSeconds: undefined };
  if (!(error instanceof ClientError)) return { status: 500, message, retryAfterSeconds: undefined };
  return { status: statusOf(error), message, retryAfterSeconds: error.retryAfterSeconds };
}

function statusOf({ code, status, retryable }: ClientError): number {
  // With another code it is the service's own, and not of something in front of it.
  if (status === 401 && code !== "unexpected_answer") return 401;
  if (status === 429) return 429;
  return retryable ? 503 : 502;
}

function refuse(response: ServerResponse, status: number, message: string, retryAfterSeconds?: number): void {
  if (response.headersSent) return void response.destroy();
  const headers = {
    "content-type": "application/json",
    ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
    ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(Math.ceil(retryAfterSeconds)) }),
  };
  const error = { jsonrpc: "2.0", id: null, error: { code: -32_600, message } };
  response.writeHead(status, { ...headers, connection: "close" }).end(JSON.stringify(error));
}

/** Undefined when it is too long. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += (chunk as Buffer).length;
    if (length > MAX_BYTES) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString("utf8");
}
