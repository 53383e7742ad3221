/** A fetcher process and the servers that a guest asks through it. */
import { expect } from "chai";
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { createFetcher } from "../../executor/fetcher/client";
import { FetchFailed, type Fetcher, type GuestRequest } from "../../executor/fetcher/types";
import { silent } from "./sandbox";

interface Seen {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A server that records its requests. */
export async function serve(answer: RequestListener): Promise<{ server: Server; port: number; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      seen.push({
        method: request.method ?? "",
        url: request.url ?? "",
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      });
      answer(request, response);
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return { server, port: (server.address() as AddressInfo).port, seen };
}

export const request = (url: string, more: Partial<GuestRequest> = {}): GuestRequest => ({
  url,
  method: "GET",
  headers: [],
  redirect: "follow",
  timeoutMs: 3_000,
  maxBytes: 1_000,
  ...more,
});
export const nothing = Buffer.alloc(0);

export async function failure(promise: Promise<unknown>): Promise<FetchFailed> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(FetchFailed);
  return error as FetchFailed;
}

export type TestServer = Awaited<ReturnType<typeof serve>>;

export interface FetchBed {
  readonly fetcher: Fetcher;
  /** Answers as its path says; `here` is its origin. */
  readonly main: TestServer;
  /** Another origin, `there`, that guests may reach. */
  readonly other: TestServer;
  /** Guests may not reach it. */
  readonly forbidden: TestServer;
  readonly here: string;
  readonly there: string;
}

/** Call inside `describe`; the bed is given to `opened` before the first test. */
export function fetchBed(opened: (bed: FetchBed) => void): void {
  let fetcher: Fetcher;
  let main: Awaited<ReturnType<typeof serve>>;
  let other: Awaited<ReturnType<typeof serve>>;
  let forbidden: Awaited<ReturnType<typeof serve>>;
  let here: string;
  let there: string;

  before(async () => {
    forbidden = await serve((_, response) => response.end("the inside"));
    other = await serve((_, response) => response.end("other"));
    main = await serve((incoming, response) => {
      const [, kind, rest = ""] = (incoming.url ?? "").split("/");
      const target = decodeURIComponent(rest);
      if (kind === "redirect")
        return response.writeHead(Number(incoming.headers["x-status"] ?? 302), { location: target }).end();
      if (kind === "gzip")
        return response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("a".repeat(Number(rest))));
      if (kind === "size") return response.end("a".repeat(Number(rest)));
      if (kind === "hints") response.writeEarlyHints({ link: "</style.css>; rel=preload" });
      if (kind === "hang") return;
      if (kind === "drip") return void setInterval(() => response.write("a"), 50).unref();
      response.writeHead(201, "Made", { "x-answer": "yes", "set-cookie": ["a=1", "b=2"] }).end("body é");
    });
    here = `http://127.0.0.1:${main.port}`;
    there = `http://127.0.0.1:${other.port}`;
    fetcher = await createFetcher({
      logger: silent,
      allowHosts: [`127.0.0.1:${main.port}`, `127.0.0.1:${other.port}`],
    });
    opened({ fetcher, main, other, forbidden, here, there });
  });
  after(async () => {
    await fetcher.close();
    for (const { server } of [main, other, forbidden]) (server.closeAllConnections(), server.close());
  });
  beforeEach(() => [main, other, forbidden].forEach(({ seen }) => seen.splice(0)));
}
