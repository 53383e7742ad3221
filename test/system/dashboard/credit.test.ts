/**
 * The dashboard's Credit screen against the whole stack: a card payment is credited once, whatever happens in between.
 */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const GOOD_CARD = "4242 4242 4242 4242";
const DECLINED_CARD = "4000 0000 0000 0002";
const POOR_CARD = "4000 0000 0000 9995";
const SECURE_CARD = "4000 0000 0000 3220";

/** Stripe.js as far as the page uses it: it puts the bank's question into the body, outside every dialog. */
const asksBesideTheForm = `() => ({
  elements: () => ({
    create: () => ({ mount: (place) => place.append("The card's own frame"), unmount: () => undefined }),
  }),
  retrievePaymentIntent: () => Promise.resolve({ paymentIntent: { status: "requires_payment_method" } }),
  confirmCardPayment: () =>
    new Promise((resolve) => {
      const challenge = document.createElement("div");
      challenge.id = "challenge";
      challenge.style = "position: fixed; inset: 0; z-index: 2147483647; background: white";
      challenge.innerHTML = "<input /><button>Confirm</button>";
      document.body.append(challenge);
      challenge.lastChild.onclick = () => {
        resolve({ error: { message: "Your bank was told " + challenge.firstChild.value + "." } });
        challenge.remove();
      };
    }),
})`;

describe("the dashboard's credit", function () {
  this.timeout(60_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;
  let key: string;
  let id: string;

  beforeEach(async () => {
    ({ key, id } = await newApiAccount(stack().baseUrl));
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
    await enter();
  });
  afterEach(async () => {
    await control("webhooks", { copies: 1, lossRate: 0 });
    await dashboard.close();
  });

  const enter = async (): Promise<void> => {
    await dashboard.signIn(key);
    await dashboard.go("Credit");
  };
  const control = (what: string, body: object): Promise<Response> =>
    fetch(`${stack().stripeUrl}/_double/${what}`, { method: "POST", body: JSON.stringify(body) });
  const balanceOf = async (): Promise<number> => {
    const answer = await fetch(`${stack().baseUrl}/core/v1/billing/balance`, {
      headers: { authorization: `Bearer ${key}` },
    });
    return ((await answer.json()) as { balance_cents: number }).balance_cents;
  };
  /** Payment intents at the processor, identified by an amount of their own. */
  const intentsOf = async (amount: number): Promise<string[]> => {
    const answer = await fetch(`${stack().stripeUrl}/v1/payment_intents?limit=100`, {
      headers: { authorization: "Bearer sk_test_any" },
    });
    const { data } = (await answer.json()) as { data: { amount: number; status: string }[] };
    return data.filter((intent) => intent.amount === amount).map(({ status }) => status);
  };
  const fillCard = async (number: string): Promise<void> => {
    await dashboard.fill("Card number", number);
    await dashboard.fill("Expires", "12 / 34");
    await dashboard.fill("CVC", "123");
  };
  const choose = async (dollars: string): Promise<void> => {
    await dashboard.page.getByRole("radio", { name: "Other", exact: true }).check({ force: true });
    await dashboard.fill("Other amount in dollars", dollars);
  };
  /** Opens the form, fills it in and pays. */
  const pay = async (dollars: string, card: string): Promise<void> => {
    await dashboard.press("Add funds");
    await choose(dollars);
    await fillCard(card);
    await dashboard.confirm("Add funds");
  };
  const shows = (text: string | RegExp): Promise<void> => dashboard.says(text);

  it("shows balance and history, accepts a card, and keeps the key out of every storage", async () => {
    await shows("$20.00");
    await dashboard.press("Add funds");
    await dashboard.page.getByRole("radio", { name: "$50" }).check({ force: true });
    await fillCard(GOOD_CARD);
    await dashboard.confirm("Add funds");
    await shows("$50.00 has been credited");
    await shows("$70.00");
    const receipt = dashboard.row(/Funds added.*\$50\.00/).getByRole("link", { name: "Receipt" });
    expect(await receipt.getAttribute("href")).to.match(/^https:\/\/pay\.stripe\.com\/receipts\//);
    expect([await receipt.getAttribute("target"), await receipt.getAttribute("rel")]).to.deep.equal([
      "_blank",
      "noopener noreferrer",
    ]);
    expect(
      await dashboard
        .row(/Signup credit/)
        .getByRole("link")
        .count(),
    ).to.equal(0);
    await dashboard.row(/Signup credit.*\$20\.00/).waitFor();
    expect(await balanceOf()).to.equal(7000);
    const stored = await dashboard.page.evaluate(
      "JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, location.href])",
    );
    expect(stored).to.not.include(key);
    dashboard.expectCalm();
    await dashboard.page.reload();
    await dashboard.button("Sign in").waitFor();
  });

  it("understands amounts as people write them", async () => {
    await pay("$7.5", GOOD_CARD);
    await shows("$7.50 has been credited");
    await pay("1,000", GOOD_CARD);
    await shows("$1,000.00 has been credited");
  });

  it("names an invalid amount or card, and charges nothing", async () => {
    await dashboard.press("Add funds");
    await fillCard(DECLINED_CARD);
    for (const amount of ["4.99", "0", "-5", "5.555", "1,00", "ten", "1e9", ""]) {
      await choose(amount);
      await dashboard.confirm("Add funds");
      await dashboard.page.getByRole("alert").filter({ hasText: "5.00 or more" }).waitFor();
    }
    await choose("6.01");
    for (const [card, failure] of [
      [DECLINED_CARD, "Your card was declined."],
      [POOR_CARD, "Your card has insufficient funds."],
      ["4242 4242 4242 4241", "Your card number is incorrect."],
    ] as const) {
      await fillCard(card);
      await dashboard.confirm("Add funds");
      await shows(failure);
    }
    expect(await balanceOf()).to.equal(2000);
    expect(await intentsOf(601), "one attempt is one intent, however many cards are tried").to.deep.equal([
      "requires_payment_method",
    ]);
    await fillCard(GOOD_CARD);
    await dashboard.confirm("Add funds");
    await shows("$26.01");
    expect(await intentsOf(601)).to.deep.equal(["succeeded"]);
  });

  it("authenticates the payer where the bank requires it, and accepts a refusal", async () => {
    await pay("6.02", SECURE_CARD);
    await dashboard.confirm("Fail authentication");
    await shows("unable to authenticate");
    await dashboard.confirm("Add funds");
    await dashboard.confirm("Complete authentication");
    await shows("$26.02");
    expect(await intentsOf(602)).to.deep.equal(["succeeded"]);
  });

  it("lets the payer answer what the processor's own script asks beside the form", async () => {
    const { page, context } = await Dashboard.open(browser(), stack().baseUrl, { bypassCSP: true }, async (opened) => {
      await opened.route(`${stack().baseUrl}/`, async (route) => {
        const page = await route.fetch();
        await route.fulfill({
          response: page,
          body: (await page.text()).replace('content="double"', 'content="stripe"'),
        });
      });
      await opened.route("https://js.stripe.com/**", (route) =>
        route.fulfill({ contentType: "text/javascript", body: "" }),
      );
      await opened.addInitScript(`window.Stripe = ${asksBesideTheForm}`);
    });
    await page.getByLabel("API key", { exact: true }).fill(key);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByRole("link", { name: "Credit", exact: true }).click();
    await page.getByRole("button", { name: "Add funds", exact: true }).click();
    await page.getByText("The card's own frame").waitFor();
    const behind = page.locator("#root");
    expect(await behind.getAttribute("inert"), "what is behind the form").to.equal("");
    await page.keyboard.press("Escape");
    await page.locator("#root:not([inert]) button:focus").getByText("Add funds").waitFor();
    await page.getByRole("button", { name: "Add funds", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Add funds", exact: true }).click();
    await page.locator("#challenge input").click();
    await page.keyboard.type("123456");
    await page.locator("#challenge button").click();
    await page.getByRole("alert").getByText("Your bank was told 123456.").waitFor();
    await context.close();
  });

  it("makes no second payment after a lost answer, a double click or a reload", async () => {
    await dashboard.page.route("**/create_payment_intent", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await pay("6.03", GOOD_CARD);
    await shows("press again to carry on");
    await dashboard.page.unroute("**/create_payment_intent");
    expect(await intentsOf(603)).to.deep.equal(["requires_payment_method"]);
    await dashboard.page.reload();
    await enter();
    await dashboard.press("Add funds");
    await choose("6.03");
    await fillCard(GOOD_CARD);
    await dashboard.dialog().getByRole("button", { name: "Add funds", exact: true }).dblclick();
    await shows("$26.03");
    expect(await intentsOf(603)).to.deep.equal(["succeeded"]);
  });

  it("credits after a reload what was paid before it, once, even without a webhook", async () => {
    await control("webhooks", { lossRate: 1 });
    await dashboard.page.route("**/confirm_payment", (route) => route.abort());
    await pay("6.04", GOOD_CARD);
    await shows("Your card was charged");
    await dashboard.page.unroute("**/confirm_payment");
    expect(await balanceOf()).to.equal(2000);
    await dashboard.page.reload();
    await enter();
    await shows("$6.04 has been credited");
    await shows("$26.04");
    await dashboard.page.reload();
    await enter();
    await shows("$26.04");
    expect(await intentsOf(604)).to.deep.equal(["succeeded"]);
  });

  it("adds up the usage of every key and day, also where that is many pages", async () => {
    const row = (api_key_hash: string): object => {
      const day = new Date().toISOString().slice(0, 10);
      return { api_key_hash, day, runs: 1, failed: 0, cost_cents: 1, changes: 0, changes_cents: 0 };
    };
    await dashboard.page.route("**/core/v1/usage?*", (route) => {
      const page = Number(new URL(route.request().url()).searchParams.get("page_number") ?? 0);
      const rows = Array.from({ length: page === 0 ? 1_000 : 1 }, () => row(page === 0 ? id : `0x${"a1".repeat(32)}`));
      return route.fulfill({ json: rows, headers: { "x-total-count": "1001" } });
    });
    await dashboard.press("Refresh");
    await dashboard.row(/The account key.*\$10\.00/).waitFor();
    await dashboard.row(/0xa1a1a1…a1a1a1.*\$0\.01/).waitFor();
    await dashboard.go("Overview");
    await shows("1,001 runs");
  });

  it("adds up usage beyond the furthest page too, and says when it cannot be read", async () => {
    const [days, keys, size, furthest] = [30, 500, 1_000, 10_000];
    const dayOf = (back: number): string => new Date(Date.now() - back * 86_400_000).toISOString().slice(0, 10);
    const rows = Array.from({ length: days * keys }, (_, at) => ({
      api_key_hash: at % keys === 0 ? id : `0x${String(at % keys).padStart(64, "0")}`,
      day: dayOf(Math.floor(at / keys)),
      ...{ runs: 1, failed: 0, cost_cents: 1, duration_ms: 1, changes: 0, changes_cents: 0 },
    }));
    const refusal = { status: 400, json: { code: "invalid_value", detail: "Use to for older ones." } };
    let isRefused = false;
    await dashboard.page.route("**/core/v1/usage?*", (route) => {
      const query = new URL(route.request().url()).searchParams;
      const from = Number(query.get("page_number") ?? 0) * size;
      const within = rows.filter(({ day }) => day <= (query.get("to") ?? day) && day >= (query.get("from") ?? day));
      if (isRefused || (from > furthest && from < within.length)) return route.fulfill(refusal);
      return route.fulfill({ json: within.slice(from, from + size), headers: { "x-total-count": `${within.length}` } });
    });
    await dashboard.press("Refresh");
    await dashboard.row(/The account key.*\$0\.30/).waitFor();
    await dashboard.go("Overview");
    await shows("15,000 runs");
    isRefused = true;
    await dashboard.press("Refresh");
    await shows("Use to for older ones.");
    await dashboard.go("Credit");
    await dashboard.page.getByRole("region", { name: "Spending by key" }).getByText("Use to for older ones.").waitFor();
  });

  it("is shown at /billing", async () => {
    const answer = await fetch(`${stack().baseUrl}/billing`, { redirect: "manual" });
    expect([answer.status, answer.headers.get("location")]).to.deep.equal([302, "/#/credit"]);
    const other = await dashboard.context.newPage();
    await other.goto(`${stack().baseUrl}/billing`);
    await other.getByLabel("API key", { exact: true }).fill(key);
    await other.getByRole("button", { name: "Sign in", exact: true }).click();
    await other.getByRole("heading", { level: 1, name: "Credit", exact: true }).waitFor();
    await other.getByRole("button", { name: "Add funds", exact: true }).click();
    const paidInto = other.getByRole("dialog").getByText("Paid into account").getByTitle(id, { exact: true });
    await paidInto.waitFor({ timeout: 5_000 });
  });
});
