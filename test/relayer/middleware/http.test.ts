/** HTTP behaviour: ids, CORS, methods, order of checks, keys, pages. */
import { expect } from "chai";
import { Api, codeOf, members, NO_PERMISSIONS, send, type HttpAnswer } from "../../support/http";
import { useApiAccount, useStack } from "../../support/stack";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("HTTP", () => {
  const stack = useStack();
  const account = useApiAccount();
  let base: string;
  before(() => void (base = stack().baseUrl));

  describe("ids", () => {
    it("every answer has a fresh request id; a client's own is ignored", async () => {
      const sent = "11111111-1111-4111-8111-111111111111";
      const answers = await Promise.all(
        ["/health", "/core/v1/limits", "/core/v1/list_groups", "/nowhere"].map((path) =>
          send(base + path, { headers: { "x-request-id": sent } }),
        ),
      );
      const ids = answers.map(({ headers }) => String(headers["x-request-id"]));
      for (const id of ids) expect(id).to.match(UUID).and.not.equal(sent);
      expect(new Set(ids).size).to.equal(ids.length);
      expect(members(answers[2] as HttpAnswer)["request_id"]).to.equal(ids[2]);
    });

    it("a correlation id is returned unchanged; one with control characters or too long is not", async () => {
      expect(
        (await send(`${base}/health`, { headers: { "x-correlation-id": "order 7/a" } })).headers["x-correlation-id"],
      ).to.equal("order 7/a");
      expect(
        (await send(`${base}/health`, { headers: { "x-correlation-id": "x".repeat(200) } })).headers[
          "x-correlation-id"
        ],
      ).to.equal(undefined);
      expect((await send(`${base}/health`)).headers["x-correlation-id"]).to.equal(undefined);
    });
  });

  describe("CORS", () => {
    it("allows any origin, without credentials, and exposes the needed headers", async () => {
      const { headers } = await send(`${base}/core/v1/limits`, { headers: { origin: "https://app.example" } });
      expect(headers["access-control-allow-origin"]).to.equal("*");
      expect(headers["access-control-allow-credentials"]).to.equal(undefined);
      for (const name of ["X-Request-Id", "X-Correlation-Id", "X-Total-Count", "X-Account", "Retry-After"])
        expect(headers["access-control-expose-headers"]).to.include(name);
    });

    it("answers a preflight with the permitted request headers", async () => {
      const asks = {
        origin: "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "x-api-key,content-type",
      };
      const { status, headers } = await send(`${base}/core/v1/add_group`, { method: "OPTIONS", headers: asks });
      expect(status).to.equal(204);
      for (const name of [
        "Authorization",
        "Content-Type",
        "Idempotency-Key",
        "X-Account",
        "X-Api-Key",
        "X-Correlation-Id",
        "X-Identity-Token",
        "X-Wallet-Auth",
      ]) {
        expect(headers["access-control-allow-headers"]).to.include(name);
      }
    });

    it("errors have the CORS headers, too", async () => {
      const { status, headers } = await send(`${base}/core/v1/list_groups`, {
        headers: { origin: "https://app.example" },
      });
      expect(status).to.equal(401);
      expect(headers["access-control-allow-origin"]).to.equal("*");
    });
  });

  describe("methods", () => {
    it("an unknown path is 404 as a problem, whatever the method", async () => {
      for (const method of ["GET", "POST", "DELETE", "PUT"] as const) {
        const answer = await send(`${base}/core/v1/nothing_here`, { method });
        expect([answer.status, codeOf(answer)]).to.deep.equal([404, "route_not_found"]);
        expect(answer.headers["content-type"]).to.include("application/problem+json");
      }
    });

    it("paths are case-sensitive", async () =>
      expect((await send(`${base}/core/v1/List_Groups`)).status).to.equal(404));

    it("the wrong method is 405 with Allow, before any other check", async () => {
      const wrong = await send(`${base}/core/v1/add_group`, { method: "GET" });
      expect([wrong.status, codeOf(wrong), wrong.headers["allow"]]).to.deep.equal([405, "method_not_allowed", "POST"]);
      const other = await send(`${base}/core/v1/list_groups`, { method: "DELETE" });
      expect([other.status, other.headers["allow"]]).to.deep.equal([405, "GET, HEAD"]);
    });

    it("HEAD is answered as GET, without a body", async () => {
      const head = await send(`${base}/core/v1/list_groups`, { method: "HEAD", key: account().key });
      expect([head.status, head.text, head.headers["x-total-count"]]).to.deep.equal([200, "", "0"]);
    });

    it("HEAD on create_wallet is 405 and mints nothing", async () => {
      const before = (await account().api.get("/list_wallets")).headers["x-total-count"];
      const head = await send(`${base}/core/v1/create_wallet`, { method: "HEAD", key: account().key });
      expect([head.status, head.headers["allow"]]).to.deep.equal([405, "GET, POST"]);
      expect((await account().api.get("/list_wallets")).headers["x-total-count"]).to.equal(before);
    });

    it("a plain OPTIONS lists the methods", async () => {
      const { status, headers } = await send(`${base}/core/v1/create_wallet`, { method: "OPTIONS" });
      expect([status, headers["allow"]]).to.deep.equal([204, "GET, POST"]);
    });
  });

  describe("order of checks", () => {
    it("404 and 405 before 415, 415 and 413 before 401, 401 before 400, 400 and 422 before 403", async () => {
      const stranger = new Api(base);
      const text = { headers: { "content-type": "text/plain" } };
      expect((await stranger.post("/nothing", Buffer.from("x"), text)).status).to.equal(404);
      expect((await stranger.post("/list_groups", Buffer.from("x"), text)).status).to.equal(405);
      expect((await stranger.post("/add_group", Buffer.from("x"), text)).status).to.equal(415);
      expect((await stranger.post("/add_group", Buffer.alloc(2 * 1024 * 1024, " "))).status).to.equal(413);
      expect((await stranger.post("/add_group", Buffer.from("{"))).status).to.equal(401);
      expect((await account().api.post("/add_group", Buffer.from("{"))).status).to.equal(400);
      const { usage_api_key: key } = await account().api.must("/add_usage_api_key", NO_PERMISSIONS);
      const powerless = account().api.with(String(key));
      expect((await powerless.post("/remove_group", {})).status).to.equal(422);
      expect((await powerless.post("/remove_group", { group_id: 0 })).status).to.equal(400);
      expect(codeOf(await powerless.post("/remove_group", { group_id: 99 })), "403 before 404").to.equal(
        "missing_scope",
      );
      expect(
        codeOf(await powerless.post("/add_pkp_to_group", { group_id: 99, pkp_id: 99 })),
        "403 before 404",
      ).to.equal("missing_scope");
    });
  });

  describe("keys", () => {
    const list = (headers: Record<string, string>) => send(`${base}/core/v1/list_groups`, { headers });

    it("are accepted in either header, and in both when equal", async () => {
      const bearer = `Bearer ${account().key}`;
      const forms: Record<string, string>[] = [
        { "x-api-key": account().key },
        { authorization: bearer },
        { authorization: `bearer ${account().key}` },
        { "x-api-key": account().key, authorization: bearer },
      ];
      for (const headers of forms) {
        expect((await list(headers)).status).to.equal(200);
      }
    });

    it("that differ are 400", async () => {
      expect(codeOf(await list({ "x-api-key": account().key, authorization: "Bearer other" }))).to.equal(
        "conflicting_credentials",
      );
      expect(codeOf(await list({ "x-api-key": account().key, "x-identity-token": "token" }))).to.equal(
        "conflicting_credentials",
      );
    });

    it("are requested with WWW-Authenticate", async () => {
      const answer = await list({});
      expect([answer.status, codeOf(answer), answer.headers["www-authenticate"]]).to.deep.equal([
        401,
        "missing_credential",
        "Bearer",
      ]);
      expect(codeOf(await list({ authorization: "Basic YTpi" }))).to.equal("missing_credential");
    });

    it(
      "in any other form are 401 before any hashing: hashes, addresses, url-safe, unpadded, " +
        "non-canonical, not a secret",
      async () => {
        const secret = Buffer.from(account().key, "base64");
        const last = account().key.charCodeAt(42);
        const afterLast = last === "A".charCodeAt(0) ? "B" : String.fromCharCode(last + 1);
        const forms = [
          account().id,
          account().wallet,
          secret.toString("hex"),
          secret.toString("base64url"),
          account().key.slice(0, -1),
          `${account().key}=`,
          Buffer.alloc(32).toString("base64"),
          Buffer.alloc(32, 0xff).toString("base64"),
          Buffer.alloc(31, 7).toString("base64"),
          `${account().key.slice(0, 42)}${afterLast}=`,
          "a".repeat(8_000),
        ];
        for (const form of forms) {
          const answer = await list({ "x-api-key": form });
          expect([answer.status, codeOf(answer)], form.slice(0, 50)).to.deep.equal([401, "malformed_key"]);
        }
      },
    );

    it("that are unknown are 401", async () => {
      expect(codeOf(await list({ "x-api-key": Buffer.alloc(32, 9).toString("base64") }))).to.equal("unknown_key");
    });
  });

  describe("pages", () => {
    before(async function () {
      this.timeout(60_000);
      for (let i = 1; i <= 5; i++)
        await account().api.must("/add_group", { group_name: `g${i}`, group_description: "" });
    });
    const page = async (query: string) => {
      const answer = await account().api.get(`/list_groups${query}`);
      return {
        ...answer,
        names: Array.isArray(answer.body) ? answer.body.map(({ name }: { name: string }) => name) : undefined,
      };
    };

    it("start at 0 and have the total", async () => {
      const first = await page("?page_number=0&page_size=2");
      expect(first.names).to.deep.equal(["g1", "g2"]);
      expect(first.headers["x-total-count"]).to.equal("5");
      expect((await page("?page_number=2&page_size=2")).names).to.deep.equal(["g5"]);
      expect((await page("?page_size=0x3&page_number=0x1")).names).to.deep.equal(["g4", "g5"]);
    });

    it("past the end are empty, however far", async () => {
      for (const number of ["3", "9007199254740991", "18446744073709551615", "0xffffffffffffffff"]) {
        const answer = await page(`?page_number=${number}&page_size=1000`);
        expect([answer.status, answer.names, answer.headers["x-total-count"]], number).to.deep.equal([200, [], "5"]);
      }
    });

    it("of invalid size or number are 400, repeated parameters 422", async () => {
      for (const query of [
        "page_size=0",
        "page_size=1001",
        "page_size=-1",
        "page_size=ten",
        "page_size=1.5",
        "page_size=",
        "page_number=-1",
        "page_number=1e3",
        "page_number=18446744073709551616",
      ]) {
        expect((await page(`?${query}`)).status, query).to.equal(400);
      }
      expect((await page("?page_size=1&page_size=2")).status).to.equal(422);
    });
  });
});
