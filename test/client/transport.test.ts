/**
 * The SDK's calls against a real HTTP server with scripted answers: time-outs, retries where they are safe, errors as
 * typed codes, no secrets in output.
 */
import { expect } from "chai";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { inspect } from "node:util";
import { ClientError, createAccount, createClient, everyItem, type ClientOptions } from "../../client";

const KEY = Buffer.alloc(32, 7).toString("base64");

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}
type Reply = (response: ServerResponse, seen: Seen) => void;

const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Reply =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

const problem = (
  status: number,
  code: string,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Reply =>
  json(
    status,
    {
      type: "about:blank",
      title: code,
      status,
      code,
      detail: `about ${code}`,
      message: `about ${code}`,
      request_id: "r-1",
      retryable: false,
      ...more,
    },
    headers,
  );

const drop: Reply = (response) => response.destroy();
const hang: Reply = () => undefined;

async function failure(promise: Promise<unknown>): Promise<ClientError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).to.be.instanceOf(ClientError);
  return error as ClientError;
}

describe("the SDK's calls", () => {
  let server: Server;
  let seen: Seen[];
  let replies: Reply[];

  before(async () => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const call = {
          method: request.method ?? "",
          url: request.url ?? "",
          headers: request.headers,
          body: Buffer.concat(chunks).toString(),
        };
        seen.push(call);
        (replies.shift() ?? problem(500, "internal_error"))(response, call);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  beforeEach(() => {
    seen = [];
    replies = [];
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = (options: Partial<ClientOptions> = {}) => createClient({ baseUrl: origin(), apiKey: KEY, ...options });
  const written = { success: true, transaction_hash: `0x${"7a".repeat(32)}` };

  it("puts path parameters, query and body where the route expects them", async () => {
    replies = [json(200, {}), json(200, [], { "x-total-count": "7" }), json(200, written), json(200, "Qm")];
    await client().group({ id: 12 });
    const page = await client().listWalletsInGroup({ group_id: "3", page_number: 1, page_size: 2 });
    await client().changeGroupPkps({ id: "9", add: ["1"], remove: [] });
    await client().getActionIpfsId("async function main() {}");
    expect(seen.map(({ method, url, body }) => `${method} ${url} ${body}`)).to.deep.equal([
      "GET /core/v1/groups/12 ",
      "GET /core/v1/list_wallets_in_group?group_id=3&page_number=1&page_size=2 ",
      'POST /core/v1/groups/9/pkps {"add":["1"],"remove":[]}',
      'POST /core/v1/get_lit_action_ipfs_id "async function main() {}"',
    ]);
    expect(page).to.deep.equal({ items: [], total: 7 });
  });

  it("cannot be redirected to another route by a path parameter", async () => {
    replies = [problem(400, "invalid_value")];
    await failure(client().group({ id: "../limits?x=1" }));
    expect(seen[0]?.url).to.equal("/core/v1/groups/..%2Flimits%3Fx%3D1");
    for (const id of ["..", ".", ""]) expect((await failure(client().group({ id }))).code).to.equal("invalid_argument");
    expect(seen).to.have.length(1);
  });

  it("sends one idempotency key for all attempts of a mutation, a new one for the next, none for a read", async () => {
    replies = [
      drop,
      problem(503, "chain_unavailable", { retryable: true }, { "retry-after": "0" }),
      json(200, written),
      json(200, written),
      json(200, true),
    ];
    await client().removeGroup({ group_id: 1 });
    await client().removeGroup({ group_id: 1 });
    await client().accountExists();
    const keys = seen.map(({ headers }) => headers["idempotency-key"]);
    expect(keys[0]).to.match(/^[0-9a-f]{32}$/);
    expect(keys.slice(1, 3)).to.deep.equal([keys[0], keys[0]]);
    expect(keys[3])
      .to.match(/^[0-9a-f]{32}$/)
      .and.not.equal(keys[0]);
    expect(keys[4]).to.equal(undefined);
  });

  it("accepts a caller's own idempotency key and correlation id", async () => {
    replies = [json(200, written)];
    await client().removeGroup({ group_id: 1 }, { idempotencyKey: "mine", correlationId: "c-1" });
    expect(seen[0]?.headers).to.include({ "idempotency-key": "mine", "x-correlation-id": "c-1", "x-api-key": KEY });
  });

  it("does not retry permanent refusals", async () => {
    for (const [status, code] of [
      [400, "invalid_value"],
      [401, "unknown_key"],
      [402, "insufficient_credit"],
      [403, "missing_scope"],
      [404, "unknown_group"],
      [409, "key_id_taken"],
      [500, "internal_error"],
    ] as const) {
      seen = [];
      replies = [problem(status, code)];
      const error = await failure(client().removeGroup({ group_id: 1 }));
      expect([error.code, error.status, error.retryable, seen.length]).to.deep.equal([code, status, false, 1]);
    }
  });

  it("gives up after the allowed number of retries", async () => {
    replies = Array.from({ length: 9 }, () =>
      problem(503, "executor_unavailable", { retryable: true }, { "retry-after": "0" }),
    );
    const error = await failure(client({ retries: 2 }).accountExists());
    expect([error.code, seen.length]).to.deep.equal(["executor_unavailable", 3]);
  });

  it("waits as long as Retry-After says, and not at all when that exceeds the caller's limit", async () => {
    replies = [problem(429, "rate_limited", { retryable: true }, { "retry-after": "1" }), json(200, true)];
    const started = Date.now();
    await client().accountExists();
    expect(Date.now() - started).to.be.within(950, 5_000);

    replies = [problem(429, "rate_limited", { retryable: true }, { "retry-after": "3600" })];
    const error = await failure(client().accountExists());
    expect([error.code, error.retryAfterSeconds, seen.length]).to.deep.equal(["rate_limited", 3600, 3]);
  });

  it("waits for its own first attempt, but reports a conflict with another caller's", async () => {
    replies = [drop, problem(409, "idempotency_in_progress"), json(200, written)];
    await client().removeGroup({ group_id: 1 });
    replies = [problem(409, "idempotency_in_progress")];
    expect((await failure(client().removeGroup({ group_id: 1 }))).code).to.equal("idempotency_in_progress");
  });

  it("passes on an error's details, request id and status", async () => {
    replies = [problem(402, "insufficient_credit", { required_cents: 1, balance_cents: 0 })];
    const error = await failure(client().removeGroup({ group_id: 1 }));
    expect(error).to.include({
      code: "insufficient_credit",
      status: 402,
      requestId: "r-1",
      message: "about insufficient_credit",
    });
    expect(error.facts).to.deep.equal({ required_cents: 1, balance_cents: 0 });
  });

  it("says that a refused call may have taken effect, when the answer of an earlier attempt was lost", async () => {
    const busy = problem(429, "rate_limited", { retryable: true, limit: 5 }, { "retry-after": "3600" });
    const down = problem(503, "shutting_down", { retryable: true }, { "retry-after": "0" });
    const html: Reply = (response) => response.writeHead(502, { "content-type": "text/html" }).end("<html>");
    const late = problem(504, "timed_out", { retryable: true }, { "retry-after": "0" });
    const proxy = problem(503, "not_ready", { retryable: true }, { "retry-after": "0" });
    const remove = (options?: object) => failure(client({ timeoutMs: 300 }).removeGroup({ group_id: 1 }, options));
    for (const lost of [drop, hang, html, late, proxy]) {
      replies = [lost, down, busy];
      const { code, status, retryable, retryAfterSeconds, facts } = await remove();
      expect([code, status, retryable, retryAfterSeconds]).to.deep.equal(["rate_limited", 429, true, 3600]);
      expect(facts).to.deep.equal({ limit: 5, may_have_taken_effect: true });
    }
    replies = [drop, problem(503, "shutting_down", { retryable: true }, { "retry-after": "15" })];
    const { code, facts } = await remove({ signal: AbortSignal.timeout(1_500) });
    expect([code, facts]).to.deep.equal(["aborted", { may_have_taken_effect: true }]);

    replies = [json(200, { ...written, api_key_hash: "0x1", secret_returned_before: true }), busy];
    const minting = createAccount({ baseUrl: origin() }, { account_name: "a", account_description: "" });
    expect((await failure(minting)).facts).to.include({ may_have_taken_effect: true });

    replies = [down, busy];
    expect((await remove()).facts).to.deep.equal({ limit: 5 });
    replies = [drop, busy];
    expect((await failure(client().accountExists())).facts).to.deep.equal({ limit: 5 });
  });

  it("ends an attempt that takes too long, and an aborted call at once", async () => {
    replies = [hang, hang];
    expect((await failure(client({ timeoutMs: 1_000, retries: 1 }).accountExists())).code).to.equal("client_timed_out");
    expect(seen).to.have.length(2);

    replies = [hang];
    expect((await failure(client().accountExists({}, { signal: AbortSignal.timeout(50) }))).code).to.equal("aborted");
    replies = [problem(503, "chain_unavailable", { retryable: true }, { "retry-after": "15" })];
    const started = Date.now();
    expect((await failure(client().accountExists({}, { signal: AbortSignal.timeout(100) }))).code).to.equal("aborted");
    expect(Date.now() - started).to.be.lessThan(3_000);
  });

  it("waits for a run as long as the run may take", async () => {
    replies = [(response) => setTimeout(() => json(200, { has_error: false })(response, seen[0] as Seen), 300)];
    await client({ timeoutMs: 50, retries: 0 }).runAction({ code: "1", timeout_ms: 5 });
  });

  it("reports a service that is unreachable, and an answer that is not the service's", async () => {
    expect((await failure(createClient({ baseUrl: "http://127.0.0.1:1", retries: 0 }).limits())).code).to.equal(
      "network_failed",
    );
    replies = [(response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>")];
    expect((await failure(client().limits())).code).to.equal("unexpected_answer");
    replies = [(response) => response.writeHead(404, { "content-type": "text/html" }).end("<html>")];
    const error = await failure(client().limits());
    expect([error.code, error.status, error.retryable]).to.deep.equal(["unexpected_answer", 404, false]);
  });

  it("follows no redirect: the key would be sent to the target", async () => {
    replies = [(response) => response.writeHead(307, { location: `${origin()}/elsewhere` }).end()];
    expect((await failure(client({ retries: 0 }).accountExists())).code).to.equal("network_failed");
    expect(seen.map(({ url }) => url)).to.deep.equal(["/core/v1/account_exists"]);
  });

  it("asks for a secret again that was lost with its answer, and says where it cannot be had", async () => {
    const made = { ...written, wallet_address: "0x", api_key_hash: `0x${"b2".repeat(32)}` };
    const account = { account_name: "a", account_description: "" };
    const replay = json(200, { ...made, secret_returned_before: true });
    replies = [drop, replay, json(200, { ...made, api_key: KEY })];
    const { account: found } = await createAccount({ baseUrl: origin() }, account);
    expect(found.api_key).to.equal(KEY);
    expect(seen.map(({ url }) => url)).to.deep.equal([
      "/core/v1/new_account",
      "/core/v1/new_account",
      "/core/v1/new_account?secret=again",
    ]);
    expect(new Set(seen.map(({ headers }) => headers["idempotency-key"])).size).to.equal(1);
    replies = [drop, replay, replay];
    const error = await failure(createAccount({ baseUrl: origin() }, account));
    expect(error.code).to.equal("secret_lost");
    expect(error.facts).to.include({ api_key_hash: made.api_key_hash });
  });

  it("refuses an invalid key or service address, and echoes neither", () => {
    for (const apiKey of ["", "short", `${KEY}\r\nx: y`, `0x${"b2".repeat(32)}`, KEY.slice(0, -1)]) {
      expect(() => createClient({ baseUrl: origin(), apiKey }))
        .to.throw(ClientError)
        .that.satisfies(
          (error: ClientError) =>
            error.code === "invalid_argument" && (apiKey === "" || !error.message.includes(apiKey)),
        );
    }
    for (const baseUrl of [
      "",
      "keys.example",
      "ftp://keys.example",
      "https://user:pass@keys.example",
      "https://keys.example?x=1",
    ]) {
      expect(() => createClient({ baseUrl })).to.throw(ClientError, "baseUrl");
    }
    expect(() => createClient({ baseUrl: origin(), apiKey: KEY, identityToken: "t" })).to.throw(
      ClientError,
      "not both",
    );
  });

  it("sends nothing over http to another machine unless that is allowed", () => {
    const remote = [
      "http://keys.example",
      "http://192.168.1.2:8000",
      "http://0.0.0.0:8000",
      "http://[::2]",
      "http://localhost.example",
    ];
    for (const baseUrl of remote) {
      expect(() => createClient({ baseUrl, apiKey: KEY })).to.throw(ClientError, "could read the keys");
      createClient({ baseUrl, apiKey: KEY, insecure: true });
    }
    for (const baseUrl of [
      "http://localhost:1",
      "http://127.0.0.2",
      "http://[::1]:1",
      "http://a.localhost",
      "https://keys.example",
    ])
      createClient({ baseUrl, apiKey: KEY });
  });

  it("serialises its errors with their messages", async () => {
    replies = [problem(401, "unknown_key")];
    const error = await failure(client().accountExists());
    expect(JSON.parse(JSON.stringify(error))).to.include({ code: "unknown_key", message: error.message, status: 401 });
  });

  it("never prints its key, nor puts it into an error", async () => {
    replies = [problem(401, "unknown_key"), drop];
    const errors = [await failure(client().accountExists()), await failure(client({ retries: 0 }).accountExists())];
    for (const shown of [client(), ...errors])
      expect(inspect(shown, { depth: 10, showHidden: true }) + JSON.stringify(shown)).not.to.include(KEY);
  });

  it("refuses to send text that a header cannot hold, and does not echo it", async () => {
    const token = "eyJ\r\nx-api-key: stolen";
    for (const call of [
      createClient({ baseUrl: origin(), identityToken: token }).accountExists(),
      client().accountExists({}, { correlationId: token }),
      client().removeGroup({ group_id: 1 }, { idempotencyKey: token }),
    ]) {
      const error = await failure(call);
      expect(error.code).to.equal("invalid_argument");
      expect(inspect(error, { depth: 10 })).not.to.include("eyJ");
    }
    expect(seen).to.have.length(0);
  });

  it("does not guess a list's total", async () => {
    replies = [json(200, [])];
    expect((await failure(client().listGroups())).code).to.equal("unexpected_answer");
  });

  it("gets a fresh identity token for each call", async () => {
    replies = [json(200, true), json(200, true)];
    let tokens = 0;
    const identified = createClient({ baseUrl: origin(), identityToken: () => `token-${(tokens += 1)}` });
    await identified.accountExists();
    await identified.accountExists();
    expect(seen.map(({ headers }) => headers["x-identity-token"])).to.deep.equal(["token-1", "token-2"]);
  });

  it("pages through a list to its end", async () => {
    const items = Array.from({ length: 5 }, (_, at) => ({ id: String(at) }));
    replies = [items.slice(0, 2), items.slice(2, 4), items.slice(4)].map((page) =>
      json(200, page, { "x-total-count": "5" }),
    );
    const all: string[] = [];
    for await (const group of everyItem(client().listGroups, {}, 2)) all.push(group.id);
    expect(all).to.deep.equal(["0", "1", "2", "3", "4"]);
  });
});
