/** What the server on HTTP answers a client whose key it cannot check: a service with scripted answers is behind it. */
import { expect } from "chai";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { keyIdOf, type ApiKey } from "../../../protocol/ids";

const PROGRAM = join(__dirname, "..", "..", "..", "dist", "client", "cli", "main.js");
const KEY = Buffer.alloc(32, 7).toString("base64");

describe("keywright mcp --http, in front of a service that does not answer for the key", function () {
  this.timeout(60_000);
  let service: Server;
  let reply: (response: ServerResponse) => void;
  let server: ChildProcess;
  let url: string;

  before(async () => {
    service = createServer((request, response) => {
      request.resume();
      reply(response);
    }).listen(0, "127.0.0.1");
    await once(service, "listening");
    const env = {
      PATH: process.env["PATH"] ?? "",
      KEYWRIGHT_URL: `http://127.0.0.1:${(service.address() as AddressInfo).port}`,
      KEYWRIGHT_CONFIG: "/nonexistent",
    };
    const started = spawn(process.execPath, [PROGRAM, "mcp", "--http", "0"], { env });
    server = started;
    const [said] = (await once(started.stderr, "data")) as [Buffer];
    url = said.toString().trim();
  });
  after(() => {
    server?.kill();
    service?.close();
  });

  const problem =
    (status: number, code: string, headers: Record<string, string> = {}, retryable = false) =>
    (response: ServerResponse): unknown =>
      response
        .writeHead(status, { "content-type": "application/problem+json", ...headers })
        .end(JSON.stringify({ type: "about:blank", title: code, status, code, detail: `about ${code}`, retryable }));
  const page =
    (status: number) =>
    (response: ServerResponse): unknown =>
      response.writeHead(status, { "retry-after": "60" }).end("<h1>a proxy's page</h1>");

  /** Status, Retry-After and the challenge of what a client is answered. */
  async function answered(answer: (response: ServerResponse) => unknown): Promise<unknown[]> {
    reply = answer;
    const headers = { authorization: `Bearer ${KEY}` };
    const response = await fetch(url, { method: "POST", headers, body: "{}" });
    const { error } = (await response.json()) as { error: { message: string } };
    expect(error.message).to.be.a("string").that.is.not.empty;
    const { headers: got } = response;
    return [response.status, got.get("retry-after"), got.get("www-authenticate")];
  }

  it("says when to come back, and never that the key is refused", async () => {
    // Longer than the SDK itself would wait.
    const later = { "retry-after": "59.5" };
    expect(await answered(problem(503, "chain_unavailable", later, true))).to.deep.equal([503, "60", null]);
    expect(await answered(problem(429, "rate_limited", later, true))).to.deep.equal([429, "60", null]);
    expect(await answered(page(502))).to.deep.equal([503, "60", null]);
    expect(await answered((response) => response.destroy())).to.deep.equal([503, null, null]);
  });

  it("does not take the page of something in between for the service's word on the key", async () => {
    for (const status of [200, 401, 403, 404]) expect(await answered(page(status))).to.include(502);
    expect(await answered(problem(400, "invalid_value"))).to.deep.equal([502, null, null]);
  });

  it("passes on that a key is unknown, and refuses the account key itself", async () => {
    expect(await answered(problem(401, "unknown_key"))).to.deep.equal([401, null, "Bearer"]);
    const owner = (response: ServerResponse): unknown =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ id: keyIdOf(KEY as ApiKey) }));
    expect(await answered(owner)).to.deep.equal([403, null, null]);
  });
});
