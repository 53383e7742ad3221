/** A guest's fetch through the fetcher process: what it sends, and which addresses it reaches. */
import { expect } from "chai";
import { exchange } from "../../../executor/fetcher/exchange";
import type { Fetcher } from "../../../executor/fetcher/types";
import { failure, fetchBed, nothing, request, serve, type TestServer } from "../../support/guestFetch";

describe("a guest's fetch, through the fetcher process", () => {
  let fetcher: Fetcher;
  let main: TestServer;
  let forbidden: TestServer;
  let here: string;
  fetchBed((bed) => ({ fetcher, main, forbidden, here } = bed));

  it("returns status, headers and bytes", async () => {
    const { response, body } = await fetcher.fetchGuest(request(`${here}/x`), nothing);
    expect(response).to.deep.include({ url: `${here}/x`, redirected: false, status: 201, statusText: "Made" });
    expect(response.headers).to.deep.include(["x-answer", "yes"]);
    expect(response.headers.filter(([name]) => name === "set-cookie")).to.have.lengthOf(2);
    expect(body.toString()).to.equal("body é");
  });

  it("skips what a server says before its answer", async () => {
    const { response, body } = await fetcher.fetchGuest(request(`${here}/hints`), nothing);
    expect([response.status, body.toString()]).to.deep.equal([201, "body é"]);
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

  it("reports in a word why an exchange failed", async () => {
    const closed = await serve(() => undefined);
    closed.server.close();
    const error = await failure(
      exchange(request(`http://127.0.0.1:${closed.port}/`), nothing, { allowHosts: ["127.0.0.1"], ports: [] }),
    );
    expect(error).to.include({ code: "failed", message: `127.0.0.1:${closed.port}: the connection was refused` });
  });
});
