import { expect } from "chai";
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { createFetcher } from "../../../executor/fetcher/client";
import { exchange } from "../../../executor/fetcher/exchange";
import { FetchFailed, type Fetcher, type GuestRequest } from "../../../executor/fetcher/types";
import { silent } from "../../support/sandbox";

interface Seen {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A server that records its requests. */
async function serve(answer: RequestListener): Promise<{ server: Server; port: number; seen: Seen[] }> {
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

const request = (url: string, more: Partial<GuestRequest> = {}): GuestRequest => ({
  url,
  method: "GET",
  headers: [],
  redirect: "follow",
  timeoutMs: 3_000,
  maxBytes: 1_000,
  ...more,
});
const nothing = Buffer.alloc(0);

async function failure(promise: Promise<unknown>): Promise<FetchFailed> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(FetchFailed);
  return error as FetchFailed;
}

describe("a guest's fetch, through the fetcher process", () => {
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
  });
  after(async () => {
    await fetcher.close();
    for (const { server } of [main, other, forbidden]) (server.closeAllConnections(), server.close());
  });
  beforeEach(() => [main, other, forbidden].forEach(({ seen }) => seen.splice(0)));

  it("returns status, headers and bytes", async () => {
    const { response, body } = await fetcher.fetchGuest(request(`${here}/x`), nothing);
    expect(response).to.deep.include({ url: `${here}/x`, redirected: false, status: 201, statusText: "Made" });
    expect(response.headers).to.deep.include(["x-answer", "yes"]);
    expect(response.headers.filter(([name]) => name === "set-cookie")).to.have.lengthOf(2);
    expect(body.toString()).to.equal("body é");
  });

  it("sends method, own headers and body, and sets the headers reserved for the service", async () => {
    const headers: [string, string][] = [
      ["X-Own", "1"],
      ["Host", "evil.test"],
      ["Connection", "upgrade"],
      ["Content-Length", "9999"],
      ["Proxy-Authorization", "x"],
      ["Transfer-Encoding", "chunked"],
      ["Upgrade", "h2c"],
      ["Expect", "100-continue"],
    ];
    await fetcher.fetchGuest(request(`${here}/x`, { method: "PUT", headers }), Buffer.from("text"));
    const [seen] = main.seen;
    expect(seen).to.include({ method: "PUT", body: "text" });
    expect(seen?.headers).to.include({ "x-own": "1", host: `127.0.0.1:${main.port}`, "content-length": "4" });
    for (const name of ["proxy-authorization", "upgrade", "expect", "transfer-encoding"])
      expect(seen?.headers).to.not.have.property(name);
  });

  it("prevents header injection", async () => {
    for (const header of [
      ["x-a", "1\r\nx-b: 2"],
      ["x-a: 1\r\nx-b", "2"],
    ] as [string, string][]) {
      await failure(fetcher.fetchGuest(request(`${here}/x`, { headers: [header] }), nothing));
    }
    expect(main.seen).to.deep.equal([]);
  });

  describe("refuses internal addresses", () => {
    const inside = (): string[] => {
      const { port } = forbidden;
      return [
        `http://127.0.0.1:${port}/`,
        `http://127.0.0.1/`,
        `http://localhost/`,
        `http://[::1]/`,
        `http://0.0.0.0/`,
        `http://0/`,
        `http://2130706433/`,
        `http://0x7f000001/`,
        `http://0177.0.0.1/`,
        `http://127.1/`,
        `http://[::ffff:127.0.0.1]/`,
        `http://[::ffff:7f00:1]/`,
        `http://[64:ff9b::7f00:1]/`,
        `http://[2002:7f00:1::]/`,
        `http://169.254.169.254/latest/meta-data/`,
        `http://10.0.0.1/`,
        `http://192.168.1.1/`,
        `http://[fd00::1]/`,
        `http://[fe80::1]/`,
        `http://１２７.０.０.１/`,
      ];
    };
    it("in any notation", async () => {
      for (const url of inside())
        expect((await failure(fetcher.fetchGuest(request(url), nothing))).code, url).to.equal("refused");
      expect(forbidden.seen).to.deep.equal([]);
    });

    it("by a redirect to any of them", async () => {
      for (const url of inside().map((text) => new URL(text).href))
        expect(
          (await failure(fetcher.fetchGuest(request(`${here}/redirect/${encodeURIComponent(url)}`), nothing))).code,
          url,
        ).to.equal("refused");
      expect(forbidden.seen).to.deep.equal([]);
    });

    it("by another scheme, port or a password in the URL", async () => {
      for (const url of [
        "file:///etc/passwd",
        "ftp://example.com/",
        "data:text/plain,x",
        "gopher://example.com/",
        "http://example.com:22/",
        "http://user:password@example.com/",
        "nonsense",
        "",
      ]) {
        const error = await failure(fetcher.fetchGuest(request(url), nothing));
        expect(error.code, url).to.equal("refused");
        expect(error.message).to.not.contain("password@");
      }
    });
  });

  describe("names", () => {
    const rules = { allowHosts: [], ports: [80, 443] };
    const resolving = (...answers: string[][]) => {
      const asked: string[] = [];
      const resolve = async (host: string) => (
        asked.push(host),
        ((answers.length > 1 ? answers.shift() : answers[0]) ?? []).map((address) => ({
          address,
          family: address.includes(":") ? 6 : 4,
        }))
      );
      return { asked, resolve };
    };

    it("that resolve to an internal address are refused, also when a public one is among them", async () => {
      for (const addresses of [
        ["127.0.0.1"],
        ["8.8.8.8", "10.0.0.1"],
        ["2606:4700::1", "::1"],
        ["::ffff:169.254.169.254"],
      ]) {
        const { resolve } = resolving(addresses);
        expect((await failure(exchange(request("http://rebind.test/"), nothing, { ...rules, resolve }))).code).to.equal(
          "refused",
        );
      }
    });

    it("are resolved once per hop, and the connection goes to that address", async () => {
      const { asked, resolve } = resolving(["127.0.0.1"], ["10.9.9.9"]);
      const { body } = await exchange(request(`http://pinned.test:${main.port}/size/3`), nothing, {
        allowHosts: [`pinned.test:${main.port}`],
        ports: [],
        resolve,
      });
      expect(body.toString()).to.equal("aaa");
      expect(asked).to.deep.equal(["pinned.test"]);
      expect(main.seen[0]?.headers.host).to.equal(`pinned.test:${main.port}`);
    });

    it("are resolved again after a redirect, so that DNS rebinding is detected", async () => {
      const { asked, resolve } = resolving(["127.0.0.1"], ["169.254.169.254"]);
      const url = `http://first.test:${main.port}/redirect/${encodeURIComponent("http://second.test/")}`;
      expect(
        (
          await failure(
            exchange(request(url), nothing, { allowHosts: [`first.test:${main.port}`], ports: [80], resolve }),
          )
        ).code,
      ).to.equal("refused");
      expect(asked).to.deep.equal(["first.test", "second.test"]);
    });
  });

  describe("redirects", () => {
    const to = (url: string) => `${here}/redirect/${encodeURIComponent(url)}`;

    it("are followed, and the answer says so", async () => {
      const { response, body } = await fetcher.fetchGuest(request(to(`${there}/end`)), nothing);
      expect(response).to.deep.include({ redirected: true, url: `${there}/end` });
      expect(body.toString()).to.equal("other");
    });

    it("lose every credential when they leave the origin, and keep it within the origin", async () => {
      const headers: [string, string][] = [
        ["Authorization", "Bearer secret"],
        ["Cookie", "a=secret"],
        ["X-Api-Key", "secret"],
        ["X-Anything", "secret"],
        ["Accept", "application/json"],
      ];
      await fetcher.fetchGuest(request(to(`${there}/end`), { headers }), nothing);
      expect(JSON.stringify(other.seen[0]?.headers)).to.not.contain("secret");
      expect(other.seen[0]?.headers.accept).to.equal("application/json");
      await fetcher.fetchGuest(request(to(`/same`), { headers }), nothing);
      expect(main.seen.at(-1)?.headers.authorization).to.equal("Bearer secret");
    });

    for (const [status, method, arrives, body] of [
      [301, "POST", "GET", ""],
      [302, "POST", "GET", ""],
      [303, "PUT", "GET", ""],
      [307, "POST", "POST", "text"],
      [308, "PUT", "PUT", "text"],
    ] as const) {
      it(`${status} of a ${method} arrives as ${arrives}`, async () => {
        await fetcher.fetchGuest(
          request(to(`${there}/end`), {
            method,
            headers: [
              ["x-status", String(status)],
              ["content-type", "text/plain"],
            ],
          }),
          Buffer.from("text"),
        );
        expect(other.seen[0]).to.include({ method: arrives, body });
      });
    }

    it("are an error or the answer itself, as the guest requests", async () => {
      expect((await failure(fetcher.fetchGuest(request(to(there), { redirect: "error" }), nothing))).code).to.equal(
        "refused",
      );
      expect((await fetcher.fetchGuest(request(to(there), { redirect: "manual" }), nothing)).response.status).to.equal(
        302,
      );
      expect(other.seen).to.deep.equal([]);
    });

    it("end after ten", async () => {
      const endless = await serve((_, response) => response.writeHead(302, { location: "/again" }).end());
      const error = await failure(
        exchange(request(`http://127.0.0.1:${endless.port}/`), nothing, {
          allowHosts: [`127.0.0.1:${endless.port}`],
          ports: [],
        }),
      );
      endless.server.close();
      expect(error.message).to.equal("more than 10 redirects");
      expect(endless.seen).to.have.lengthOf(11);
    });
  });

  describe("limits", () => {
    it("count bytes after decompression: N passes, N + 1 does not", async () => {
      for (const kind of ["size", "gzip"]) {
        expect((await fetcher.fetchGuest(request(`${here}/${kind}/1000`), nothing)).body).to.have.lengthOf(1_000);
        expect((await failure(fetcher.fetchGuest(request(`${here}/${kind}/1001`), nothing))).code).to.equal(
          "too_large",
        );
      }
    });

    it("stop a decompression bomb early", async () => {
      const startedAt = Date.now();
      const bomb = request(`${here}/gzip/100000000`, { timeoutMs: 20_000 });
      expect((await failure(fetcher.fetchGuest(bomb, nothing))).code).to.equal("too_large");
      expect(Date.now() - startedAt).to.be.below(15_000);
    }).timeout(30_000);

    for (const kind of ["hang", "drip"]) {
      it(`end an answer that ${kind}s`, async () => {
        const startedAt = Date.now();
        expect(
          (await failure(fetcher.fetchGuest(request(`${here}/${kind}`, { timeoutMs: 300 }), nothing))).code,
        ).to.equal("timed_out");
        expect(Date.now() - startedAt).to.be.within(290, 1_500);
      });
    }

    it("a cancelled fetch ends at once and closes its connection", async () => {
      const stop = new AbortController();
      const closed = new Promise((resolve) =>
        main.server.once("request", (incoming) => incoming.socket.once("close", resolve)),
      );
      const fetching = failure(fetcher.fetchGuest(request(`${here}/hang`), nothing, { signal: stop.signal }));
      setTimeout(() => stop.abort(), 100);
      await fetching;
      await closed;
    });
  });

  it("reports in a word why an exchange failed", async () => {
    const closed = await serve(() => undefined);
    closed.server.close();
    const error = await failure(
      exchange(request(`http://127.0.0.1:${closed.port}/`), nothing, { allowHosts: ["127.0.0.1"], ports: [] }),
    );
    expect(error).to.include({ code: "failed", message: `127.0.0.1:${closed.port}: the connection was refused` });
  });
});
