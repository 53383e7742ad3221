/**
 * The TLS endpoint inside the TEE: a certificate from an ACME authority, evidence that the verifier accepts, forwarded
 * requests, renewal without interruption.
 */
import { expect } from "chai";
import fc from "fast-check";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { request } from "node:https";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import pino from "pino";
import { verifyService } from "../../client/verify";
import { ERRORS } from "../../protocol/errors";
import { problemSchema } from "../../protocol/http";
import { readConfig } from "../../ingress/config";
import { startIngress, type Ingress } from "../../ingress/ingress";
import { startStack, type Stack } from "../../scripts/dev/stack";
import { freePort } from "../../scripts/dev/ports";
import { startAcmeDouble, type AcmeDouble } from "../support/acmeDouble";

const SILENT = pino({ level: "silent" });

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
  certificate: string;
}

describe("the TLS ingress", function () {
  this.timeout(120_000);
  const folder = mkdtempSync(join(tmpdir(), "keywright-ingress-"));
  const evidence = mkdtempSync(join(tmpdir(), "keywright-evidence-"));
  let stack: Stack;
  let acme: AcmeDouble;
  let httpPort: number;
  let ingress: Ingress;
  let upstream: Server;
  const seen: IncomingHttpHeaders[] = [];

  const configOf = (overrides: Record<string, string> = {}) =>
    readConfig({
      DOMAIN: "localhost",
      ACME_DIRECTORY_URL: acme.directoryUrl,
      ACME_EMAIL: "",
      UPSTREAM_URL: stack.baseUrl,
      HTTPS_PORT: "0",
      HTTP_PORT: String(httpPort),
      EVIDENCE_DIR: evidence,
      STATE_DIR: folder,
      EXECUTOR_SOCKET: stack.executorSocket,
      ...overrides,
    });

  function ask(port: number, path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const sent = request(
        { host: "127.0.0.1", servername: "localhost", port, path, headers, ca: acme.rootPem, agent: false },
        (response) => {
          const { fingerprint256 } = (
            response.socket as unknown as { getPeerCertificate(): { fingerprint256: string } }
          ).getPeerCertificate();
          let body = "";
          response.setEncoding("utf8").on("data", (text: string) => (body += text));
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body, certificate: fingerprint256 }),
          );
        },
      );
      sent.on("error", reject).end();
    });
  }

  /** As a balancer forwards a connection: the PROXY line in one piece or two, then TLS. */
  function askBehind(line: string, path: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const raw = connect(ingress.httpsPort, "127.0.0.1").on("error", reject);
      raw.write(line.slice(0, 9));
      raw.write(line.slice(9));
      const secure = connectTls({ socket: raw, servername: "localhost", ca: acme.rootPem }).on("error", reject);
      let answer = "";
      secure.setEncoding("utf8").on("data", (text: string) => (answer += text));
      secure.once("end", () => resolve(answer));
      secure.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
    });
  }

  /** Resolves with the first answer's beginning. */
  function sendRaw(text: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const options = { port: ingress.httpsPort, host: "127.0.0.1", servername: "localhost", ca: acme.rootPem };
      const secure = connectTls(options, () => secure.write(text)).on("error", reject);
      secure.setEncoding("utf8").once("data", (answer: string) => (secure.destroy(), resolve(answer)));
    });
  }

  before(async () => {
    httpPort = await freePort();
    acme = await startAcmeDouble(() => httpPort);
    // The executor attests the certificate of this ingress, the relayer serves this evidence.
    stack = await startStack({ env: { EVIDENCE_DIR: evidence, TLS_CERT_FILE: join(evidence, "cert-localhost.pem") } });
    upstream = createServer((incoming, answer) => (seen.push(incoming.headers), answer.end(incoming.url)));
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    ingress = await startIngress(configOf(), SILENT);
  });
  after(async () => {
    await ingress?.stop();
    upstream?.close();
    await stack?.stop();
    await acme?.stop();
    for (const path of [folder, evidence]) rmSync(path, { recursive: true, force: true });
  });

  it("serves the relayer under a certificate of the authority", async () => {
    const answer = await ask(ingress.httpsPort, "/health");
    expect([answer.status, answer.body]).to.deep.equal([200, '{"status":"ok"}']);
    expect(answer.headers["strict-transport-security"]).to.contain("max-age");
  });

  it("writes evidence that passes the verifier: files, quote, and the leaf of the connection", async () => {
    expect(readdirSync(evidence).sort()).to.deep.equal([
      "acme-account.json",
      "cert-localhost.pem",
      "quote.json",
      "sha256sum.txt",
    ]);
    expect(JSON.parse(readFileSync(join(evidence, "acme-account.json"), "utf8")))
      .to.have.property("uri")
      .that.contains("/account/");
    const report = await verifyService(`https://localhost:${ingress.httpsPort}`, { ca: acme.rootPem });
    const status = Object.fromEntries(report.steps.map(({ id, status: found }) => [id, found]));
    expect(status, JSON.stringify(report.steps)).to.include({
      evidenceQuote: "passed",
      evidenceFiles: "passed",
      tlsLeaf: "passed",
      freshness: "passed",
    });
  });

  it("keeps its keys readable by itself only", () => {
    for (const name of ["account.pem", "certificate.json"])
      expect(statSync(join(folder, name)).mode & 0o777, name).to.equal(0o600);
    for (const name of readdirSync(evidence))
      expect(readFileSync(join(evidence, name), "utf8")).not.to.contain("PRIVATE KEY");
  });

  it("redirects plain http to https, and answers only open challenges", async () => {
    const redirected = await fetch(`http://127.0.0.1:${httpPort}/core/v1/limits?x=1`, { redirect: "manual" });
    expect([redirected.status, redirected.headers.get("location")]).to.deep.equal([
      308,
      "https://localhost/core/v1/limits?x=1",
    ]);
    expect(
      (await fetch(`http://127.0.0.1:${httpPort}/.well-known/acme-challenge/made-up`, { redirect: "manual" })).status,
    ).to.equal(404);
  });

  it("reuses its certificate after a restart, without asking the authority", async () => {
    const before_ = (await ask(ingress.httpsPort, "/health")).certificate;
    const issued = acme.issued();
    await ingress.stop();
    ingress = await startIngress(configOf(), SILENT);
    expect((await ask(ingress.httpsPort, "/health")).certificate).to.equal(before_);
    expect(acme.issued()).to.equal(issued);
  });

  it("appends the client's address to the forwarded ones, and forwards no hop-by-hop header", async () => {
    await ingress.stop();
    ingress = await startIngress(
      configOf({ UPSTREAM_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` }),
      SILENT,
    );
    const headers = {
      "x-forwarded-for": "203.0.113.9",
      connection: "close, x-secret-hop",
      "x-secret-hop": "1",
      te: "trailers",
      "x-api-key": "k",
    };
    expect((await ask(ingress.httpsPort, "/a?b=c", headers)).body).to.equal("/a?b=c");
    const got = seen.at(-1) ?? {};
    expect(got["x-forwarded-for"]).to.match(/^203\.0\.113\.9, (::ffff:)?127\.0\.0\.1$/);
    expect(got).to.include({ "x-api-key": "k", "x-forwarded-proto": "https" });
    expect(got).not.to.have.any.keys("x-secret-hop", "te");
  });

  it("forwards the body of any request as a body: none is a request of its own", async () => {
    await restartBeforeUpstream();
    const hidden = "GET /hidden HTTP/1.1\r\nhost: localhost\r\nx-hidden: 1\r\n\r\n";
    const chunked = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
    const headers = fc.constantFrom(
      "",
      "content-length",
      "transfer-encoding",
      "host",
      "x-forwarded-for, content-length",
    );
    const methods = fc.constantFrom("GET", "HEAD", "DELETE", "OPTIONS", "POST", "PUT", "PATCH");
    await fc.assert(
      fc.asyncProperty(methods, headers, fc.boolean(), async (method, hops, isChunked) => {
        seen.length = 0;
        const framing = isChunked ? "transfer-encoding: chunked" : `content-length: ${hidden.length}`;
        const connection = hops === "" ? "" : `connection: ${hops}\r\n`;
        const body = isChunked ? chunked : hidden;
        await sendRaw(`${method} /shown HTTP/1.1\r\nhost: localhost\r\n${framing}\r\n${connection}\r\n${body}`);
        // On the same connection to the relayer, if any is kept.
        expect((await ask(ingress.httpsPort, "/another")).body).to.equal("/another");
        expect(seen.map((got) => [got["x-hidden"], got.host])).to.deep.equal([
          [undefined, "localhost"],
          [undefined, `127.0.0.1:${ingress.httpsPort}`],
        ]);
        expect(seen[0]?.["x-forwarded-for"]).to.match(/127\.0\.0\.1$/);
      }),
      { numRuns: 60 },
    );
  });

  /** Not before the stack's relayer, which counts and refuses by itself. */
  async function restartBeforeUpstream(): Promise<void> {
    await ingress.stop();
    const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    ingress = await startIngress(configOf({ UPSTREAM_URL: upstreamUrl }), SILENT);
  }

  it("forwards one request of a connection at a time, and ends a connection that sends many at once", async () => {
    await restartBeforeUpstream();
    let [underWay, most] = [0, 0];
    const slow = (_: unknown, answer: ServerResponse): void => {
      most = Math.max(most, ++underWay);
      const { end } = answer;
      answer.end = ((...args: unknown[]) =>
        setTimeout(() => (underWay--, Reflect.apply(end, answer, args)), 20)) as never;
    };
    upstream.prependListener("request", slow);
    const all = (count: number): Promise<string> =>
      new Promise((resolve) => {
        const options = { port: ingress.httpsPort, host: "127.0.0.1", servername: "localhost", ca: acme.rootPem };
        const ask = (i: number, last: boolean): string =>
          `GET /${i}. HTTP/1.1\r\nhost: x\r\n${last ? "connection: close\r\n" : ""}\r\n`;
        const requests = Array.from({ length: count }, (_, i) => ask(i, i === count - 1)).join("");
        const secure = connectTls(options, () => secure.write(requests)).on("error", () => undefined);
        let text = "";
        secure.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        secure.once("close", () => resolve(text));
      });
    try {
      expect((await all(6)).match(/^\/\d\./gm) ?? []).to.deep.equal(["/0.", "/1.", "/2.", "/3.", "/4.", "/5."]);
      seen.length = 0;
      expect(await all(3_000)).not.to.contain("/10.");
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect([most, seen.length <= 9]).to.deep.equal([1, true]);
    } finally {
      upstream.off("request", slow);
    }
    expect((await ask(ingress.httpsPort, "/still")).body).to.equal("/still");
  });

  it("ends a connection whose body comes in very many small pieces", async () => {
    await restartBeforeUpstream();
    const options = { port: ingress.httpsPort, host: "127.0.0.1", servername: "localhost", ca: acme.rootPem };
    const secure = connectTls(options).on("error", () => undefined);
    const closed = new Promise((resolve) => secure.once("close", () => resolve("ended")));
    secure.write("POST /pieces HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    secure.write("1\r\nx\r\n".repeat(100_000));
    secure.resume();
    // Without it the connection is open till it has been idle for five seconds.
    expect(await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, 4_000, "open"))])).to.equal(
      "ended",
    );
    expect((await ask(ingress.httpsPort, "/after")).body, "others are served").to.equal("/after");
  });

  it("ends a connection whose client reads nothing of its answer", async () => {
    await ingress.stop();
    const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    ingress = await startIngress(configOf({ UPSTREAM_URL: upstreamUrl }), SILENT, { unreadMs: 300 });
    const large = ({ url }: IncomingMessage, answer: ServerResponse): void => {
      if (url === "/large") answer.write(Buffer.alloc(64 * 2 ** 20, "a"));
    };
    upstream.prependListener("request", large);
    try {
      const ended = once(upstream, "request").then(([incoming]) => {
        const { socket } = incoming as IncomingMessage;
        return new Promise((resolve) => socket.on("error", () => undefined).once("close", resolve));
      });
      const options = { port: ingress.httpsPort, host: "127.0.0.1", servername: "localhost", ca: acme.rootPem };
      const secure = connectTls(options, () => secure.pause().write("GET /large HTTP/1.1\r\nhost: x\r\n\r\n"));
      secure.on("error", () => undefined);
      await ended;
      secure.destroy();
    } finally {
      upstream.off("request", large);
    }
  });

  it("reads on after an answer that came before the request's body", async () => {
    await restartBeforeUpstream();
    const body = Buffer.alloc(2 ** 22, "a");
    const both = await new Promise<string>((resolve, reject) => {
      const options = { port: ingress.httpsPort, host: "127.0.0.1", servername: "localhost", ca: acme.rootPem };
      const secure = connectTls(options, () => {
        secure.write(`POST /early HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n`);
        secure.write(body);
        secure.write("GET /next HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
      }).on("error", reject);
      let text = "";
      secure.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      secure.once("close", () => resolve(text));
    });
    expect(both.match(/HTTP\/1.1 200 /g)).to.have.length(2);
    expect(both).to.match(/\/next/);
  });

  for (const PROXY_PROTOCOL of ["", "true"])
    it(`lets requests under way end when it stops, for a while${PROXY_PROTOCOL && ", behind a balancer"}`, async () => {
      await ingress.stop();
      const UPSTREAM_URL = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
      ingress = await startIngress(configOf({ UPSTREAM_URL, PROXY_PROTOCOL }), SILENT, { drainMs: 1_000 });
      const slow = (incoming: IncomingMessage, answer: ServerResponse): void => {
        const { end } = answer;
        const isAnswered = incoming.url === "/slow";
        answer.end = ((...args: unknown[]) =>
          isAnswered && setTimeout(() => Reflect.apply(end, answer, args), 500)) as never;
      };
      upstream.prependListener("request", slow);
      try {
        const asked = ["/slow", "/never"].map((path) =>
          askBehind(PROXY_PROTOCOL && "PROXY UNKNOWN\r\n", path).catch(() => "cut"),
        );
        await once(upstream, "request");
        await once(upstream, "request");
        // Without any request: nothing to wait for.
        const raw = connect(ingress.httpsPort, "127.0.0.1");
        raw.write(PROXY_PROTOCOL && "PROXY UNKNOWN\r\n");
        const unused = connectTls({ socket: raw, servername: "localhost", ca: acme.rootPem });
        await once(unused, "secureConnect");
        const begun = Date.now();
        const closedAt = once(unused.resume(), "close").then(() => Date.now());
        await ingress.stop();
        expect(Date.now() - begun).to.be.within(900, 4_000);
        expect((await closedAt) - begun).to.be.below(800);
        const [answered, cut] = await Promise.all(asked);
        expect(answered).to.contain("/slow");
        expect(cut).not.to.contain("/never");
      } finally {
        upstream.off("request", slow);
      }
    });

  it("refuses more headers than it would forward", async () => {
    await restartBeforeUpstream();
    const many = Array.from({ length: 1_001 }, (_, i) => `h${i}: 1\r\n`).join("");
    const answer = await sendRaw(`GET /many HTTP/1.1\r\nhost: localhost\r\n${many}content-length: 4\r\n\r\nbody`);
    expect(answer).to.match(/^HTTP\/1.1 431 /);
  });

  it("trusts a balancer's PROXY line where configured, and refuses connections without it", async () => {
    await ingress.stop();
    const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    ingress = await startIngress(configOf({ UPSTREAM_URL: upstreamUrl, PROXY_PROTOCOL: "true" }), SILENT);
    for (const [line, client] of [
      ["PROXY TCP4 198.51.100.7 10.0.0.1 50000 443\r\n", /^198\.51\.100\.7$/],
      ["PROXY TCP6 2001:db8::7 2001:db8::1 50000 443\r\n", /^2001:db8::7$/],
      ["PROXY UNKNOWN\r\n", /127\.0\.0\.1$/],
    ] as const) {
      expect(await askBehind(line, "/behind"), line).to.contain("/behind");
      expect(seen.at(-1)?.["x-forwarded-for"], line).to.match(client);
    }
    for (const line of [
      "",
      "PROXY TCP4 nobody 10.0.0.1 50000 443\r\n",
      `PROXY TCP4 ${"1".repeat(200)}`,
      "GET / HTTP/1.1\r\n",
    ]) {
      expect(await askBehind(line, "/stranger").catch(() => ""), line).to.equal("");
    }
    expect(seen.some((headers) => headers["x-forwarded-for"] === "nobody")).to.equal(false);
  });

  it("answers 503 with the remedy while the relayer is unavailable", async () => {
    await ingress.stop();
    ingress = await startIngress(configOf({ UPSTREAM_URL: `http://127.0.0.1:${await freePort()}` }), SILENT);
    const answer = await ask(ingress.httpsPort, "/health");
    expect([answer.status, answer.headers["retry-after"]]).to.deep.equal([503, "5"]);
    expect(answer.headers).to.include({ "access-control-allow-origin": "*", "cache-control": "no-store" });
    const { detail, ...problem } = problemSchema.parse(JSON.parse(answer.body));
    expect(problem).to.deep.equal({
      type: `https://127.0.0.1:${ingress.httpsPort}/docs/errors#not_ready`,
      title: ERRORS.not_ready.title,
      status: 503,
      code: "not_ready",
      request_id: answer.headers["x-request-id"],
      retryable: true,
      message: detail,
    });
    // The body of a refused request does not keep back the next one on its connection.
    const both = await new Promise<string>((resolve, reject) => {
      const options = { port: ingress.httpsPort, host: "127.0.0.1", servername: "localhost", ca: acme.rootPem };
      const secure = connectTls(options, () => {
        secure.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${2 ** 22}\r\n\r\n`);
        secure.write(Buffer.alloc(2 ** 22, "a"));
        secure.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
      }).on("error", reject);
      let text = "";
      secure.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      secure.once("close", () => resolve(text));
    });
    expect(both.match(/^HTTP\/1.1 503 /gm)).to.have.length(2);
  });

  it("renews in the last third of a certificate's lifetime, without interruption", async () => {
    await ingress.stop();
    rmSync(join(folder, "certificate.json"));
    acme.setLife(6_000);
    ingress = await startIngress(configOf(), SILENT);
    const first = (await ask(ingress.httpsPort, "/health")).certificate;
    const deadline = Date.now() + 15_000;
    let now = first;
    while (now === first && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 250));
      now = (await ask(ingress.httpsPort, "/health")).certificate;
    }
    expect(now).not.to.equal(first);
    acme.setLife(86_400_000);
  });

  it("starts with a certificate that is due while the authority issues none", async () => {
    await ingress.stop();
    rmSync(join(folder, "certificate.json"));
    acme.setLife(6_000);
    ingress = await startIngress(configOf(), SILENT);
    const { certificate } = await ask(ingress.httpsPort, "/health");
    await ingress.stop();
    acme.setLife(86_400_000);
    await new Promise((resolve) => setTimeout(resolve, 4_200));
    const ACME_DIRECTORY_URL = `http://127.0.0.1:${await freePort()}/directory`;
    ingress = await startIngress(configOf({ ACME_DIRECTORY_URL }), SILENT);
    expect((await ask(ingress.httpsPort, "/health")).certificate).to.equal(certificate);
  });

  it("does not start without a certificate, and says why; an invalid setting is named", async () => {
    await ingress.stop();
    rmSync(join(folder, "certificate.json"));
    const wrongPort = configOf({ HTTP_PORT: "0" });
    const failure: unknown = await startIngress(wrongPort, SILENT).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(Error);
    expect(existsSync(join(folder, "certificate.json"))).to.equal(false);
    writeFileSync(join(evidence, "cert-old.example.pem"), "old");
    ingress = await startIngress(configOf(), SILENT);
    expect(existsSync(join(evidence, "cert-old.example.pem"))).to.equal(false);
    expect(() => configOf({ DOMAIN: "Not A Host", UPSTREAM_URL: "ftp://x" })).to.throw(/DOMAIN[\s\S]*UPSTREAM_URL/);
  });
});
