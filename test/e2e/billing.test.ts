/** The billing routes over HTTP, in the whole stack: invalid requests are refused and change no balance. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import Stripe from "stripe";
import { makeAccount, makeUsageKey, type TestAccount } from "../support/journey";
import { useStack } from "../support/stack";

const SIGNUP_CENTS = 2000;
/** As the development stack starts it. */
const WEBHOOK_SECRET = "whsec_development";

interface Answer {
  readonly status: number;
  readonly code: string | undefined;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
}

describe("the billing routes", function () {
  this.timeout(60_000);
  const stack = useStack();
  let account: TestAccount;
  before(async () => {
    account = await makeAccount(stack().baseUrl);
  });

  const ask = async (
    path: string,
    body?: unknown,
    headers: Record<string, string> = { "x-api-key": account.apiKey },
  ): Promise<Answer> => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const sent = body === undefined ? {} : { method: "POST", body: text };
    const answer = await fetch(`${stack().baseUrl}/core/v1/billing/${path}`, {
      ...sent,
      headers: { "content-type": "application/json", ...headers },
    });
    const value = (await answer.json()) as Record<string, unknown>;
    return { status: answer.status, code: value.code as string | undefined, body: value, headers: answer.headers };
  };
  const processor = (path: string, form?: Record<string, string>): Promise<Response> =>
    fetch(`${stack().stripeUrl}/v1/${path}`, {
      headers: { authorization: "Bearer sk_test_any" },
      ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) }),
    });
  const balance = async (): Promise<unknown> => (await ask("balance")).body.balance_cents;
  const newIntent = async (): Promise<string> =>
    (await ask("create_payment_intent", { amount_cents: 500 })).body.payment_intent_id as string;

  it("return the publishable key without a credential, and nothing else", async () => {
    expect((await ask("stripe_config", undefined, {})).body).to.deep.equal({ publishable_key: "pk_test_development" });
    for (const [path, body] of [
      ["balance"],
      ["history"],
      ["create_payment_intent", { amount_cents: 500 }],
      ["confirm_payment", { payment_intent_id: "pi_1" }],
    ] as const) {
      expect((await ask(path, body, {})).status, path).to.equal(401);
    }
  });

  it("show the balance in cents and as formatted text", async () => {
    expect((await ask("balance")).body).to.deep.equal({
      balance_cents: SIGNUP_CENTS,
      balance_display: "$20.00",
      reserved_cents: 0,
    });
  });

  it("refuse every invalid amount with its own error", async () => {
    const amounts: [unknown, number, string][] = [
      [0, 400, "amount_out_of_range"],
      [499, 400, "amount_out_of_range"],
      [-500, 400, "amount_out_of_range"],
      [100_000_000, 400, "amount_out_of_range"],
      [500.5, 422, "invalid_body"],
      ["500", 422, "invalid_body"],
      [null, 422, "invalid_body"],
      [[500], 422, "invalid_body"],
      [undefined, 422, "invalid_body"],
    ];
    for (const [amount, status, code] of amounts) {
      const answer = await ask("create_payment_intent", { amount_cents: amount });
      expect([answer.status, answer.code], JSON.stringify(amount)).to.deep.equal([status, code]);
    }
    expect([400, 422]).to.include((await ask("create_payment_intent", '{"amount_cents": 1e999}')).status);
    expect((await ask("create_payment_intent", { amount_cents: 500, currency: "eur" })).code).to.equal("invalid_body");
    expect((await ask("create_payment_intent", '{"amount_cents": ')).code).to.equal("malformed_json");
  });

  it("return one intent, secret included, for one Idempotency-Key, and a conflict for another amount", async () => {
    const headers = { "x-api-key": account.apiKey, "idempotency-key": "attempt 1" };
    const first = await ask("create_payment_intent", { amount_cents: 600 }, headers);
    const again = await ask("create_payment_intent", { amount_cents: 600 }, headers);
    expect(first.body.client_secret).to.match(/^pi_\w+_secret_\w+$/);
    expect(again.body).to.deep.equal(first.body);
    const other = await ask("create_payment_intent", { amount_cents: 601 }, headers);
    expect([other.status, other.code]).to.deep.equal([409, "idempotency_conflict"]);
  });

  it("credit a paid intent once; unpaid, foreign and unknown ones not at all", async () => {
    const stranger = await makeAccount(stack().baseUrl);
    const intent = await newIntent();
    const confirm = (headers?: Record<string, string>): Promise<Answer> =>
      ask("confirm_payment", { payment_intent_id: intent }, headers);
    const unpaid = await confirm();
    expect([unpaid.status, unpaid.code]).to.deep.equal([409, "payment_not_succeeded"]);
    await processor(`payment_intents/${intent}/confirm`, { payment_method: "pm_card_visa" });
    const foreign = await confirm({ "x-api-key": stranger.apiKey });
    expect([foreign.status, foreign.code]).to.deep.equal([404, "payment_intent_not_found"]);
    const unknown = await ask("confirm_payment", { payment_intent_id: "pi_unknown\u0000" });
    expect([unknown.status, unknown.code]).to.deep.equal([404, "payment_intent_not_found"]);
    expect((await confirm()).body).to.include({ success: true, balance_cents: SIGNUP_CENTS + 500 });
    expect((await confirm()).body).to.deep.equal({
      success: true,
      balance_cents: SIGNUP_CENTS + 500,
      already_credited: true,
    });
  });

  it("let a usage key pay and see the balance, and show the history to owners only", async () => {
    const bot = await makeUsageKey(account.client, stack().baseUrl, {});
    const asBot = { "x-api-key": bot.key };
    expect((await ask("balance", undefined, asBot)).body.balance_cents).to.equal(await balance());
    expect((await ask("create_payment_intent", { amount_cents: 500 }, asBot)).status).to.equal(200);
    const refused = await ask("history", undefined, asBot);
    expect([refused.status, refused.code]).to.deep.equal([403, "owner_only"]);
    const history = await ask("history?page_size=2&page_number=0");
    expect(history.headers.get("x-total-count")).to.equal("3");
    expect(
      (history.body as unknown as { kind: string; amount_cents: number }[]).map(({ kind, amount_cents: cents }) => [
        kind,
        cents,
      ]),
    ).to.deep.equal([
      ["write", -1],
      ["top_up", 500],
    ]);
    expect((await ask("history?page_number=18446744073709551615")).body).to.deep.equal([]);
  });

  it("accept a webhook only with a signature over its exact bytes, and change nothing otherwise", async () => {
    const before = await balance();
    const intent = { object: "payment_intent", status: "succeeded", amount_received: 9_999, currency: "usd" };
    const metadata = { deployment: `31337:${stack().contractAddress}`, account_id: account.accountId };
    const id = `pi_hook${randomBytes(6).toString("hex")}`;
    const payload = JSON.stringify({
      id: "evt_1",
      object: "event",
      type: "payment_intent.succeeded",
      data: { object: { id, ...intent, metadata } },
    });
    const signature = (text: string, secret = WEBHOOK_SECRET): string =>
      Stripe.webhooks.generateTestHeaderString({ payload: text, secret });
    for (const headers of [
      {},
      { "stripe-signature": signature(`${payload} `) },
      { "stripe-signature": signature(payload, "whsec_other") },
    ]) {
      const refused = await ask("webhook", payload, headers as Record<string, string>);
      expect([refused.status, refused.code]).to.deep.equal([401, "invalid_webhook_signature"]);
    }
    expect(await balance()).to.equal(before);
    for (let time = 0; time < 2; time++) {
      expect((await ask("webhook", payload, { "stripe-signature": signature(payload) })).body).to.deep.equal({
        received: true,
      });
    }
    expect(await balance()).to.equal(Number(before) + 9_999);
  });
});
