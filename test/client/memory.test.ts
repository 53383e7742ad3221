/**
 * The SDK retains nothing of a call, however it ends, although all calls share a client and a signal: heap snapshots
 * before and after many calls, compared by class.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { count } from "../support/counts";
import { heapOptions, leakedClasses } from "../support/heap";

const SDK = join(__dirname, "../../dist/client/index.js");
const KEY = Buffer.alloc(32, 7).toString("base64");

/** Makes calls of every kind with one client, as a long-lived program does; answers with the outcomes it got. */
const CALLER = `
  const { createClient } = require(${JSON.stringify(SDK)});
  const shared = new AbortController();
  process.on("message", async ({ origin, times }) => {
    const of = (path) => createClient({ baseUrl: origin + path, apiKey: ${JSON.stringify(KEY)}, retries: 0 });
    const [served, refused, silent] = [of("/served"), of("/refused"), of("/silent")];
    const call = (client, options) => client.account({}, { signal: shared.signal, ...options }).then(
      () => "served", ({ code }) => code);
    const ends = new Set();
    for (let i = 0; i < times; i++) {
      ends.add(await call(served));
      ends.add(await call(refused));
      ends.add(await call(silent, { signal: AbortSignal.any([shared.signal, AbortSignal.timeout(5)]) }));
      ends.add(await call(silent, { timeoutMs: 5 }));
    }
    process.send([...ends].sort());
  });`;

describe("the SDK's memory over many calls", function () {
  this.timeout(count(120_000, 1_200_000));
  const folder = mkdtempSync(join(tmpdir(), "keywright-sdk-heap-"));
  let server: Server;
  let caller: ChildProcess;

  before(async () => {
    server = createServer((request, response) => {
      if (request.url?.startsWith("/silent") === true) return;
      const isServed = request.url?.startsWith("/served") === true;
      response.writeHead(isServed ? 200 : 403, { "content-type": "application/json" });
      response.end(
        JSON.stringify(isServed ? {} : { status: 403, code: "missing_scope", detail: "no", request_id: "r" }),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    caller = spawn(process.execPath, [...heapOptions(folder).split(" "), "-e", CALLER], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
  });
  after(() => {
    caller.kill("SIGKILL");
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });

  async function round(times: number): Promise<void> {
    caller.send({ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, times });
    const [ends] = (await once(caller, "message")) as [string[]];
    expect(ends).to.deep.equal(["aborted", "client_timed_out", "missing_scope", "served"]);
  }

  it("does not grow with calls that are served, refused, aborted or timed out", async () => {
    const times = count(50, 1_000);
    await round(20);
    expect(await leakedClasses({ pid: caller.pid ?? 0, folder }, () => round(times), times)).to.deep.equal([]);
  });
});
