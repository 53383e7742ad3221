/** Redirects and limits of a guest's fetch. */
import { expect } from "chai";
import { exchange } from "../../../executor/fetcher/exchange";
import type { Fetcher } from "../../../executor/fetcher/types";
import { failure, fetchBed, nothing, request, serve, type TestServer } from "../../support/guestFetch";

describe("a guest's fetch: redirects and limits", () => {
  let fetcher: Fetcher;
  let main: TestServer;
  let other: TestServer;
  let here: string;
  let there: string;
  fetchBed((bed) => ({ fetcher, main, other, here, there } = bed));

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
});
