/** The checkout page in a real browser, against the whole stack. */
import { mkdtemp, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { chromium, type BrowserContext, type Page } from "playwright-core";
import { convertAccount } from "../../client";
import { connect, fundedWallet } from "../support/chain";
import { useStack } from "../support/stack";

const CHROMIUM = "/usr/bin/chromium";
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const GOOD_CARD = "4242 4242 4242 4242";
const DECLINED_CARD = "4000 0000 0000 0002";
const POOR_CARD = "4000 0000 0000 9995";
const SECURE_CARD = "4000 0000 0000 3220";

describe("the checkout page", function () {
  this.timeout(60_000);
  const stack = useStack();
  let profile: string;
  let browser: BrowserContext;
  let page: Page;
  /** Whatever the page or the browser complained of: violations of the content security policy, too. */
  const complaints: string[] = [];

  before(async () => {
    if (!existsSync(CHROMIUM)) throw new Error("These tests need Debian's browser: apt-get install chromium");
    profile = await mkdtemp(join(tmpdir(), "chromium-"));
    browser = await chromium.launchPersistentContext(profile, { executablePath: CHROMIUM, args: FLAGS, headless: true });
  });
  after(async () => {
    await browser?.close();
    await rm(profile, { recursive: true, force: true });
  });
  beforeEach(async () => {
    page = await browser.newPage();
    complaints.length = 0;
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      if (/Content Security Policy/i.test(message.text())) complaints.push(message.text());
    });
    await page.goto(`${stack().baseUrl}/billing`);
    await page.evaluate("localStorage.clear()");
  });
  afterEach(async () => {
    await control("webhooks", { copies: 1, lossRate: 0 });
    await page.close();
  });

  const control = (what: string, body: object): Promise<Response> =>
    fetch(`${stack().stripeUrl}/_double/${what}`, { method: "POST", body: JSON.stringify(body) });

  const newAccount = async (): Promise<string> => {
    const body = JSON.stringify({ account_name: "Ada", account_description: "" });
    const answer = await fetch(`${stack().baseUrl}/core/v1/new_account`, { method: "POST", headers: { "content-type": "application/json" }, body });
    return ((await answer.json()) as { api_key: string }).api_key;
  };
  const balanceOf = async (key: string): Promise<number> => {
    const answer = await fetch(`${stack().baseUrl}/core/v1/billing/balance`, { headers: { authorization: `Bearer ${key}` } });
    return ((await answer.json()) as { balance_cents: number }).balance_cents;
  };
  /** Intents this account has at the processor: all of them belong to its one customer. */
  const intentsOf = async (amount: number): Promise<string[]> => {
    const answer = await fetch(`${stack().stripeUrl}/v1/payment_intents?limit=100`, { headers: { authorization: "Bearer sk_test_any" } });
    const { data } = (await answer.json()) as { data: { amount: number; status: string }[] };
    return data.filter((intent) => intent.amount === amount).map(({ status }) => status);
  };

  const signIn = async (key: string): Promise<void> => {
    await page.fill("#api-key", key);
    await page.click("#sign-in button");
  };
  const fillCard = async (number: string): Promise<void> => {
    await page.fill("#card-number", number);
    await page.fill("#card-expiry", "12 / 34");
    await page.fill("#card-cvc", "123");
  };
  /** An amount of its own makes a test's intents known among all. */
  const choose = async (dollars: string): Promise<void> => {
    await page.check("input[value=other]");
    await page.fill("#other-amount", dollars);
  };
  const shows = (id: string, text: string | RegExp): Promise<void> =>
    page
      .locator(`#${id}`)
      .filter({ hasText: text })
      .waitFor({ timeout: 20_000 })
      .catch(async () => expect.fail(`#${id} never showed ${text}; the page says: ${await page.locator("main").innerText()}`));

  it("shows balance and history, sells a package, and keeps the key out of every storage", async () => {
    const key = await newAccount();
    await signIn(key);
    await shows("balance", "$20.00");
    await page.check("input[value='5000']");
    await fillCard(GOOD_CARD);
    await page.click("#pay");
    await shows("notice", "$50.00 has been credited");
    await shows("balance", "$70.00");
    const rows = await page.locator("#history tr").allInnerTexts();
    expect(rows.map((row) => row.split("\t").slice(1, 3))).to.deep.equal([
      ["top up", "$50.00"],
      ["signup credit", "$20.00"],
    ]);
    expect(await balanceOf(key)).to.equal(7000);
    const stored = await page.evaluate("JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, location.href])");
    expect(stored).to.not.include(key);
    expect(complaints).to.deep.equal([]);
    await page.reload();
    expect(await page.isVisible("#account"), "after a reload nobody is signed in").to.equal(false);
  });

  it("says what is wrong with a key, an amount or a card, and charges nothing", async () => {
    await signIn(Buffer.alloc(32, 7).toString("base64"));
    await shows("failure", /key/i);
    const key = await newAccount();
    await signIn(key);
    await shows("balance", "$20.00");
    for (const amount of ["4.99", "0", "-5", "5.5", "ten", "1e9", ""]) {
      await choose(amount);
      await page.click("#pay");
      await shows("failure", "5.00 or more");
    }
    await choose("6.01");
    for (const [card, failure] of [
      [DECLINED_CARD, "Your card was declined."],
      [POOR_CARD, "Your card has insufficient funds."],
      ["4242 4242 4242 4241", "Your card number is incorrect."],
    ] as const) {
      await fillCard(card);
      await page.click("#pay");
      await shows("failure", failure);
    }
    expect(await balanceOf(key)).to.equal(2000);
    expect(await intentsOf(601), "one attempt is one intent, however many cards are tried").to.deep.equal(["requires_payment_method"]);
    await fillCard(GOOD_CARD);
    await page.click("#pay");
    await shows("balance", "$26.01");
    expect(await intentsOf(601)).to.deep.equal(["succeeded"]);
  });

  it("lets the owner of a ChainSecured account sign in with the wallet, and the old key no more", async () => {
    const provider = connect(stack().rpcUrl);
    const wallet = await fundedWallet(provider);
    const key = await newAccount();
    await convertAccount({ baseUrl: stack().baseUrl, apiKey: key, signer: wallet });
    provider.destroy();
    await signIn(key);
    await shows("failure", /no longer a credential/);
    await page.exposeFunction("askWallet", async ({ method, params }: { method: string; params: string[] }) => {
      if (method === "eth_requestAccounts") return [wallet.address];
      const { types, domain, message } = JSON.parse(params[1] ?? "");
      return wallet.signTypedData(domain, { BillingAuth: types.BillingAuth }, message);
    });
    await page.addInitScript("window.ethereum = { request: (call) => window.askWallet(call) }");
    await page.reload();
    // Whose accounts are whose is read from the chain's events, which are followed a moment behind.
    while (!(await page.isVisible("#account"))) {
      await page.click("#wallet-sign-in");
      await sleep(200);
    }
    await shows("balance", /\$(20\.00|19\.99)/);
    await choose("6.05");
    await fillCard(GOOD_CARD);
    await page.click("#pay");
    await shows("notice", "$6.05 has been credited");
    expect(await page.locator("#history tr").count()).to.be.at.least(2);
  });

  it("asks the payer where the bank wants it, and takes no for an answer", async () => {
    const key = await newAccount();
    await signIn(key);
    await shows("balance", "$20.00");
    await choose("6.02");
    await fillCard(SECURE_CARD);
    await page.click("#pay");
    await page.click("#authentication-fail");
    await shows("failure", "unable to authenticate");
    await page.click("#pay");
    await page.click("#authentication-pass");
    await shows("balance", "$26.02");
    expect(await intentsOf(602)).to.deep.equal(["succeeded"]);
  });

  it("makes no second payment after a time-out, an unheard answer or a reload", async () => {
    const key = await newAccount();
    await signIn(key);
    await shows("balance", "$20.00");
    await choose("6.03");
    await fillCard(GOOD_CARD);
    await page.route("**/create_payment_intent", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await page.click("#pay");
    await shows("failure", "press again to carry on");
    await page.unroute("**/create_payment_intent");
    expect(await intentsOf(603)).to.deep.equal(["requires_payment_method"]);
    await page.reload();
    await signIn(key);
    await shows("balance", "$20.00");
    await choose("6.03");
    await fillCard(GOOD_CARD);
    await page.click("#pay");
    await shows("balance", "$26.03");
    expect(await intentsOf(603)).to.deep.equal(["succeeded"]);
  });

  it("credits after a reload what was paid before it, once, even if no webhook came", async () => {
    await control("webhooks", { lossRate: 1 });
    const key = await newAccount();
    await signIn(key);
    await shows("balance", "$20.00");
    await choose("6.04");
    await fillCard(GOOD_CARD);
    await page.route("**/confirm_payment", (route) => route.abort());
    await page.click("#pay");
    await shows("failure", "Your card was charged");
    await page.unroute("**/confirm_payment");
    expect(await balanceOf(key)).to.equal(2000);
    await page.reload();
    await signIn(key);
    await shows("notice", "$6.04 has been credited");
    await shows("balance", "$26.04");
    await page.reload();
    await signIn(key);
    await shows("balance", "$26.04");
    expect(await intentsOf(604)).to.deep.equal(["succeeded"]);
  });

  it("lets nothing else run or load in it, and nobody frame it", async () => {
    const answer = await fetch(`${stack().baseUrl}/billing`);
    const policy = answer.headers.get("content-security-policy") ?? "";
    for (const rule of ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", `connect-src 'self' ${stack().stripeUrl}`]) {
      expect(policy).to.include(rule);
    }
    expect(policy).to.match(/script-src 'sha256-[^']+';/);
    expect(policy).to.not.include("unsafe");
    expect(await answer.text()).to.not.match(/(src|href)=/);
    await page.evaluate("document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.injected = true' }))");
    expect(await page.evaluate("window.injected")).to.equal(undefined);
  });
});
