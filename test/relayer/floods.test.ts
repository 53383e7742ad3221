/** Floods of unauthenticated requests: each costs little before a paying account is known, and all are limited. */
import { connect } from "node:net";
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { ROUTE_NAMES, endpointsOf } from "../../protocol/http";
import { RATE_LIMITS, type RateLimits } from "../../protocol/limits";
import { cidOfCode } from "../../protocol/cid";
import { cidsBeside } from "../../relayer/cids";
import { parseBody } from "../../relayer/middleware/body";
import { ChainBed } from "../support/chainBed";
import { Api, codeOf, newApiAccount, NO_PERMISSIONS, send, type HttpAnswer } from "../support/http";
import { expectInTime } from "../support/inTime";
import { refusal } from "../support/refusal";
import { startRelayerBed, type RelayerBed } from "../support/relayerBed";

const FEW: RateLimits = {
  ...RATE_LIMITS.development,
  addressRequestsPerSecond: 40,
  unknownCredentialsPerMinutePerAddress: 5,
  heavyPerMinutePerAddress: 2,
  paymentIntentsPerMinute: 2,
  freeChangesPerDay: 3,
};
const randomKey = (): string => randomBytes(32).toString("base64");

describe("a flood from an unknown caller", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let relayer: RelayerBed;
  before(async () => {
    bed = await ChainBed.start();
    relayer = await startRelayerBed({ chain: bed, store: {}, limits: FEW });
  });
  after(async () => {
    await relayer?.stop();
    await bed?.stop();
  });
  /** Calls of the contract; heads are polled all the time. */
  const questions = (): number => bed.proxy.count("eth_call");
  /** The minimum of three counts: the relayer's own background calls are not in all of them. */
  async function questionsOf(work: () => Promise<void>): Promise<number> {
    const counts: number[] = [];
    for (let i = 0; i < 3; i++) {
      const before = questions();
      await work();
      counts.push(questions() - before);
    }
    return Math.min(...counts);
  }
  /** The relayer trusts one proxy in front of it. */
  const from = (address: string) => ({ headers: { "x-forwarded-for": address } });
  const asStranger = (path: string, address: string): Promise<HttpAnswer> =>
    new Api(relayer.baseUrl, randomKey()).get(path, from(address));

  it("with unknown keys: each costs one exchange, and soon none", async () => {
    const { api: known } = await newApiAccount(relayer.baseUrl);
    expect((await known.get("/list_groups")).status).to.equal(200);
    const codes: unknown[] = [];
    const costs: number[] = [];
    for (let index = 0; index < 8; index++) {
      const before = questions();
      codes.push(codeOf(await asStranger("/list_groups", "203.0.113.1")));
      costs.push(questions() - before);
    }
    expect(Math.max(...costs.slice(0, 5)), costs.join()).to.be.at.most(3);
    // As in questionsOf: the relayer's own calls are not between all of them.
    expect(Math.min(...costs.slice(5)), costs.join()).to.equal(0);
    expect(codes).to.deep.equal([...Array<string>(5).fill("unknown_key"), ...Array<string>(3).fill("rate_limited")]);
    const asked = await questionsOf(async () => {
      expect(codeOf(await asStranger("/account_exists", "203.0.113.1"))).to.equal("rate_limited");
    });
    expect(asked).to.equal(0);
    expect((await known.get("/list_groups", from("203.0.113.1"))).status, "who is known is served on").to.equal(200);
  });

  it("with live keys, asked whether they exist: none of them uses up the budget", async () => {
    const accounts = await Promise.all(Array.from({ length: 8 }, () => newApiAccount(relayer.baseUrl)));
    for (const { api } of accounts)
      expect((await api.get("/account_exists", from("203.0.113.44"))).body).to.equal(true);
    expect(codeOf(await asStranger("/list_groups", "203.0.113.44"))).to.equal("unknown_key");
    for (let index = 0; index < 5; index++) await asStranger("/account_exists", "203.0.113.44");
    expect(codeOf(await asStranger("/account_exists", "203.0.113.44")), "unknown ones do").to.equal("rate_limited");
  });

  it("with many concurrent ones: the budget is not exceeded", async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => asStranger("/list_groups", "203.0.113.2")));
    expect(answers.filter((answer) => codeOf(answer) === "unknown_key")).to.have.length(5);
  });

  it("with a known but revoked key: its early reads count against the budget of unknown callers", async () => {
    const { api: owner, id } = await newApiAccount(relayer.baseUrl);
    const made = await owner.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "leaked" });
    const leaked = new Api(relayer.baseUrl, String(made["usage_api_key"]));
    expect((await leaked.get("/list_groups", from("203.0.113.77"))).status).to.equal(200);
    // Revoked by a payer whose nonces this relayer does not use, so that it does not notice.
    const outside = bed.payers + 1;
    await bed.registerPayers(outside, outside);
    const payer = bed.contract.connect(bed.executor.wallet(outside).connect(bed.provider));
    await (await payer.removeUsageApiKey(id, String(made["api_key_hash"]))).wait();
    const guesses = Array.from({ length: 10 }, () => leaked.get("/list_groups", from("203.0.113.77")));
    const codes = (await Promise.all(guesses)).map(codeOf);
    expect(new Set(codes)).to.include("unknown_key");
    expect([...new Set(codes)].filter((code) => code !== "unknown_key" && code !== "rate_limited")).to.deep.equal([]);
    const asked = await questionsOf(async () => {
      expect(codeOf(await asStranger("/list_groups", "203.0.113.77"))).to.equal("rate_limited");
      expect(codeOf(await leaked.get("/list_groups", from("203.0.113.77")))).to.equal("rate_limited");
    });
    expect(asked).to.equal(0);
    expect((await owner.get("/list_groups", from("203.0.113.77"))).status).to.equal(200);
  });

  it("with any request: refused before any work once the address has used up its second", async () => {
    const endpoints = ROUTE_NAMES.flatMap((name) => endpointsOf(name, "keywright").slice(0, 1));
    const all = (): Promise<HttpAnswer>[] =>
      endpoints.map(({ method, path }) =>
        send(`${relayer.baseUrl}${path.replace(/:\w+/g, "1")}`, { method, key: randomKey(), ...from("203.0.113.3") }),
      );
    await Promise.all(Array.from({ length: 60 }, () => send(`${relayer.baseUrl}/health`, from("203.0.113.3"))));
    const refused = (await Promise.all(all())).filter(({ status }) => status === 429).length;
    // A new second may have begun in between.
    expect(refused).to.be.at.least(endpoints.length - FEW.addressRequestsPerSecond);
    const flood = await Promise.all([...all(), ...all(), ...all(), ...all()]);
    for (const [index, endpoint] of endpoints.entries()) {
      const answers = flood.filter((_, at) => at % endpoints.length === index);
      expect(
        answers.some(({ status }) => status === 429),
        endpoint.path,
      ).to.equal(true);
    }
  });

  it("for quotes and CIDs: they have a budget of their own", async () => {
    const ask = async (): Promise<unknown> =>
      codeOf(await new Api(relayer.baseUrl).post("/get_lit_action_ipfs_id", "1", from("203.0.113.4")));
    expect([await ask(), await ask(), await ask()]).to.deep.equal([undefined, undefined, "rate_limited"]);
    expect(codeOf(await send(`${relayer.baseUrl}/attestation`, from("203.0.113.4")))).to.equal("rate_limited");
  });

  it("for payments of one account: one budget over all addresses; other accounts continue", async () => {
    const [{ api }, { api: other }] = [await newApiAccount(relayer.baseUrl), await newApiAccount(relayer.baseUrl)];
    const begin = async (who: Api, address: string): Promise<unknown> =>
      codeOf(await who.post("/billing/create_payment_intent", { amount_cents: 500 }, from(address)));
    // This relayer has no payment processor: a request within the budget gets that error.
    const codes = [
      await begin(api, "203.0.113.5"),
      await begin(api, "203.0.113.6"),
      await begin(api, "203.0.113.7"),
      await begin(other, "203.0.113.7"),
    ];
    expect(codes).to.deep.equal([
      "payments_unavailable",
      "payments_unavailable",
      "rate_limited",
      "payments_unavailable",
    ]);
  });

  it("for changes that cost nothing: each credential has a budget; repeated requests do not count", async () => {
    const { api: owner } = await newApiAccount(relayer.baseUrl);
    const { usage_api_key } = await owner.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "public" });
    const change = async (path: string, body: object, key: string, by = owner): Promise<unknown> =>
      codeOf(await by.post(path, body, { headers: { "idempotency-key": key } }));
    const limit = (key: string): Promise<unknown> =>
      change("/usage_key_limits", { usage_api_key, cents_per_day: 1 }, key);
    const codes: unknown[] = [];
    for (const key of ["1", "2", "2", "2", "3", "4"]) codes.push(await limit(key));
    expect(codes).to.deep.equal([...Array<unknown>(5).fill(undefined), "rate_limited"]);
    const confirm = { payment_intent_id: "pi_unknown" };
    expect(await change("/billing/confirm_payment", confirm, "5")).to.equal("rate_limited");
    expect(await change("/billing/confirm_payment", confirm, "5", owner.with(String(usage_api_key)))).to.not.equal(
      "rate_limited",
    );
    expect((await owner.post("/remove_usage_api_key", { usage_api_key })).status, "what is no free change").to.equal(
      200,
    );
  });

  it("with a body that never ends: it is answered 401 before any of it is read", async () => {
    const { hostname, port } = new URL(relayer.baseUrl);
    const socket = connect(Number(port), hostname);
    socket.write(
      "POST /core/v1/run_action HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: " +
        "chunked\r\n\r\n1\r\n{\r\n",
    );
    const answer = await new Promise<string>((resolve) =>
      socket.once("data", (data: Buffer) => resolve(data.toString())),
    );
    socket.destroy();
    expect(answer).to.match(/^HTTP\/1.1 401 /);
  });

  it("with large code: it is hashed off the main thread, with a bounded queue", async () => {
    const cidOf = cidsBeside();
    const code = "x".repeat(8 * 1024 * 1024);
    let iterations = 0;
    const ticking = setInterval(() => (iterations += 1), 1);
    const [first, ...others] = await Promise.allSettled(
      Array.from({ length: 40 }, (_, index) => cidOf(index === 0 ? code : "y".repeat(100_000) + String(index))),
    );
    clearInterval(ticking);
    expect(first).to.deep.equal({ status: "fulfilled", value: await cidOfCode(code) });
    expect(iterations, "the event loop was not blocked").to.be.greaterThan(5);
    expect(others.filter((one) => one.status === "rejected").length).to.be.greaterThan(0);
  });

  it("with large bodies: parsed off the main thread, and not at all with millions of values", async () => {
    const body = Buffer.from(
      JSON.stringify({
        code: `// "quoted" \\\n${"é".repeat(8 * 1024 * 1024)}`,
        js_params: { a: [1, "]", { b: null }] },
      }),
    );
    let iterations = 0;
    const ticking = setInterval(() => (iterations += 1), 1);
    const parsed = await parseBody(body);
    clearInterval(ticking);
    expect(iterations, "the event loop was not blocked").to.be.greaterThan(3);
    expect(parsed).to.deep.equal(JSON.parse(body.toString()));
    const pieces = ["0,", "[],", '{"a":[{}]},'];
    const hostile = pieces.map((piece) => Buffer.from(`{"js_params":[${piece.repeat((1 << 24) / piece.length)}0]}`));
    const begun = Date.now();
    for (const each of hostile) expect((await refusal(parseBody(each))).code).to.equal("invalid_value");
    expectInTime(Date.now() - begun, 2_000, "ms for all");
    expect((await refusal(parseBody(Buffer.from(`{"a":"${"x".repeat(100_000)}`)))).code).to.equal("malformed_json");
    expect((await refusal(parseBody(Buffer.from(`${"[".repeat(40_000)}${"]".repeat(40_000)}`)))).code).to.equal(
      "invalid_value",
    );
  });
});
