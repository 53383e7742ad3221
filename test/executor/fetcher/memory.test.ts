/**
 * The fetcher retains nothing of a fetch, however it ends: heap snapshots before and after many fetches, compared by
 * class.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { expect } from "chai";
import { readFrames, writeFrame } from "../../../executor/frames";
import type { FromFetcher, ToFetcher } from "../../../executor/fetcher/messages";
import { count } from "../../support/counts";
import { leakedClasses, heapOptions } from "../../support/heap";

const PROGRAM = join(__dirname, "../../../dist/executor/fetcher/main.js");

describe("the fetcher's memory over many fetches", function () {
  this.timeout(count(120_000, 1_200_000));
  const folder = mkdtempSync(join(tmpdir(), "keywright-fetcher-heap-"));
  const waiting = new Map<number, (message: FromFetcher) => void>();
  let server: Server;
  let fetcher: ChildProcess;
  let channel: Duplex;
  let origin: string;
  let calls = 0;

  before(async () => {
    server = createServer((request, response) => {
      if (request.url === "/slow") return;
      if (request.url === "/moved") response.writeHead(302, { location: "/" });
      response.end(request.url === "/big" ? Buffer.alloc(200_000) : "fetched");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    fetcher = spawn(process.execPath, [...heapOptions(folder).split(" "), PROGRAM], {
      stdio: ["ignore", "inherit", "inherit", "pipe"],
    });
    channel = fetcher.stdio[3] as Duplex;
    readFrames(
      channel,
      ({ header }) => onMessage(header as FromFetcher),
      (reason) => expect.fail(reason),
    );
    const ready = answerTo(-1);
    say({
      type: "configure",
      configuration: { gateways: [], jwksUrls: [], allowHosts: [new URL(origin).host], ports: [] },
    });
    await ready;
  });
  after(async () => {
    channel.destroy();
    fetcher.kill("SIGKILL");
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });

  function onMessage(message: FromFetcher): void {
    if (message.type === "grow") return say({ type: "grown", call: message.call });
    const call = message.type === "ready" ? -1 : message.call;
    waiting.get(call)?.(message);
    waiting.delete(call);
  }
  const say = (message: ToFetcher): void => writeFrame(channel, message);
  const answerTo = (call: number): Promise<FromFetcher> => new Promise((resolve) => waiting.set(call, resolve));
  async function fetchOnce(url: string, { timeoutMs = 60_000, cancelled = false } = {}): Promise<string> {
    const call = calls++;
    const answer = answerTo(call);
    const request = { url, method: "GET", headers: [], redirect: "follow" as const, timeoutMs, maxBytes: 100_000 };
    say({ type: "guest", call, run: call % 8, lookups: 10, account: "", request });
    if (cancelled) setTimeout(() => say({ type: "cancel", call }), 10);
    const said = await answer;
    return said.type === "failed" ? said.code : said.type;
  }
  const kinds: Record<string, [ends: string[], fetching: () => Promise<string>]> = {
    fetched: [["done"], () => fetchOnce(origin)],
    "sent elsewhere": [["done"], () => fetchOnce(`${origin}/moved`)],
    "too large": [["too_large"], () => fetchOnce(`${origin}/big`)],
    refused: [["refused"], () => fetchOnce("http://127.0.0.1:1/")],
    "timed out": [["timed_out"], () => fetchOnce(`${origin}/slow`, { timeoutMs: 20 })],
    "given up": [["failed", "timed_out"], () => fetchOnce(`${origin}/slow`, { cancelled: true })],
  };
  async function round(times: number): Promise<void> {
    for (let i = 0; i < times; i++)
      for (const [what, [ends, fetching]] of Object.entries(kinds)) expect(ends, what).to.include(await fetching());
  }

  it("does not grow with fetches that are served, redirected, too large, refused, timed out or aborted", async () => {
    const times = count(50, 1_000);
    const pid = fetcher.pid ?? 0;
    await round(10);
    expect(await leakedClasses({ pid, folder }, () => round(times), times)).to.deep.equal([]);
  });
});
