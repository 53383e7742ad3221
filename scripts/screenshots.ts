/**
 * `npm run screenshots`: the dashboard's pictures for the README and docs/dashboard.md, taken from the demo's account
 * on its own stack with Debian's Chromium: light, dark, and phone-sized.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { createClient, type Body, type Client } from "../client";
import { ACTION, makeAccount, makeUsageKey, must, permit } from "./demo/account";
import { spreadOverTheLastMonth } from "./demo/pastMonth";
import { startStack, type Stack } from "./dev/stack";

const FOLDER = join(__dirname, "..", "..", "docs", "images");
const CHROMIUM = "/usr/bin/chromium";
const DAY_SECONDS = 86_400;
const quiet = (): void => undefined;

interface Prepared {
  readonly key: string;
  readonly pkp: string;
}

/** Waits like a payment that needs the bank's answer: the run takes, and costs, more than one second. */
const PAY = `async function main({ pkpId, message }) {
  await new Promise((resolve) => setTimeout(resolve, 1100));
  return { signature: await Actions.signMessage({ pkpId, message }) };
}`;
const PRICE = `async function main({ pair }) {
  return { pair, cents: 2000 + pair.length };
}`;

/** The demo's account with a month of activity, so that lists and charts have content. */
async function prepare(stack: Stack): Promise<Prepared> {
  const { baseUrl } = stack;
  const { client, key } = await makeAccount(baseUrl, quiet);
  const { pkp, group, cid } = await permit(client, quiet);
  const demo = await makeUsageKey(client, group, quiet);
  const [payouts, oracle] = await setUpAccount(client, { pkp, cid });
  await runAll(baseUrl, demo, 70, (number) => ({
    code: ACTION,
    js_params: { pkpId: pkp, message: `greeting ${number}` },
  }));
  await runAll(baseUrl, oracle, 50, (number) => ({
    code: PRICE,
    js_params: number % 17 === 0 ? {} : { pair: "ETH/USD" },
  }));
  await runAll(baseUrl, payouts, 30, (number) => ({
    code: PAY,
    js_params: { pkpId: pkp, message: `invoice ${number}` },
  }));
  await payIn(stack, client, 5_000);
  await spreadOverTheLastMonth(stack);
  return { key, pkp };
}

/** Gives the keys that may run in each group. */
async function setUpAccount(
  client: Client,
  { pkp, cid }: { readonly pkp: string; readonly cid: string },
): Promise<[string, string]> {
  const make = async (name: string, description: string): Promise<string> =>
    (await client.createWallet({ name, description })).wallet_address;
  const payer = await make("payouts", "pays invoices");
  const feed = await make("price feed", "signs prices every minute");
  await make("cold storage", "in no group: nothing may use it");
  const pay = await addAction(client, PAY, "pay an invoice", "waits for the bank, then signs");
  const price = await addAction(client, PRICE, "publish a price", "fetches, compares, answers");
  const payouts = await groupWithKey(client, {
    name: "payouts",
    description: "signs what leaves the treasury",
    pkps: [payer, pkp],
    actions: [cid, pay],
    days: 90,
  });
  const oracle = await groupWithKey(client, {
    name: "oracle",
    description: "signs prices every minute",
    pkps: [feed],
    actions: [price],
    days: 4,
  });
  return [payouts, oracle];
}

async function addAction(client: Client, code: string, name: string, description: string): Promise<string> {
  const cid = await client.getActionIpfsId(code);
  await client.addAction({ action_ipfs_cid: cid, name, description });
  return cid;
}

interface DemoAccount {
  readonly name: string;
  readonly description: string;
  readonly pkps: readonly string[];
  readonly actions: readonly string[];
  /** Until its key expires. */
  readonly days: number;
}

async function groupWithKey(client: Client, { name, description, pkps, actions, days }: DemoAccount): Promise<string> {
  const { group_id } = await client.addGroup({
    group_name: name,
    group_description: description,
    pkp_ids_permitted: [...pkps],
  });
  for (const action_ipfs_cid of actions) await client.addActionToGroup({ group_id, action_ipfs_cid });
  const { usage_api_key } = await client.addUsageApiKey({
    name: `${name} service`,
    description: "",
    can_create_groups: false,
    can_delete_groups: false,
    can_create_pkps: false,
    manage_ipfs_ids_in_groups: [],
    add_pkp_to_groups: [],
    remove_pkp_from_groups: [],
    execute_in_groups: [group_id],
    expiration: String(Math.floor(Date.now() / 1000) + days * DAY_SECONDS),
    balance: "2500",
  });
  return usage_api_key;
}

const AT_ONCE = 5;

async function runAll(
  baseUrl: string,
  apiKey: string,
  runs: number,
  bodyOf: (number: number) => Body<"runAction">,
): Promise<void> {
  const bot = createClient({ baseUrl, apiKey });
  for (let from = 0; from < runs; from += AT_ONCE)
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, runs - from) }, (_, at) => bot.runAction(bodyOf(from + at))),
    );
}

/** Pays with a test card of the payment processor's double. */
async function payIn({ stripeUrl }: Stack, client: Client, cents: number): Promise<void> {
  const { payment_intent_id: id } = await client.createPaymentIntent({ amount_cents: cents });
  const body = new URLSearchParams({ payment_method: "pm_card_visa" });
  const headers = { authorization: "Bearer sk_test_development" };
  must(
    (await fetch(`${stripeUrl}/v1/payment_intents/${id}/confirm`, { method: "POST", headers, body })).ok,
    "the double takes the payment",
  );
  await client.confirmPayment({ payment_intent_id: id });
}

type Go = (page: Page) => Promise<void>;
const to =
  (screen: string): Go =>
  async (page) => {
    const menu = page.getByRole("button", { name: "Menu" });
    if (await menu.isVisible()) await menu.click();
    await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: screen, exact: true }).click();
    await page.waitForLoadState("networkidle");
  };
const all =
  (...steps: Go[]): Go =>
  async (page) => {
    for (const step of steps) await step(page);
  };
const press =
  (name: string): Go =>
  (page) =>
    page.getByRole("button", { name, exact: true }).click();
const open =
  (name: string): Go =>
  (page) =>
    page.getByRole("link", { name, exact: true }).click();

const runDemo =
  (pkp: string): Go =>
  async (page) => {
    await page.getByRole("textbox", { name: "Code", exact: true }).fill(ACTION);
    await page
      .getByRole("textbox", { name: "Parameters", exact: true })
      .fill(JSON.stringify({ pkpId: pkp, message: "invoice 20" }, null, 2));
    await press("Run")(page);
    await page.getByText("succeeded").waitFor();
    await page.evaluate("scrollTo(0, 0)");
  };
const usageKeyForm: Go = all(to("Usage keys"), press("Create usage key"), async (page) => {
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("invoice bot");
  await page.getByRole("group", { name: "May run actions in" }).getByRole("checkbox", { name: "payouts" }).check();
});

const pictures = ({ pkp }: Prepared): readonly (readonly [name: string, go: Go])[] => [
  ["overview", async (page) => page.locator(".chart canvas").last().waitFor()],
  ["group", all(to("Groups"), open("payouts"))],
  ["pkp", all(to("PKPs"), open("demo wallet"))],
  ["usage-key", usageKeyForm],
  ["runner", all(to("Runner"), runDemo(pkp))],
  ["activity", to("Activity")],
  ["credit", to("Credit")],
  [
    "trust",
    all(to("Trust"), press("Check now"), async (page) => {
      const checks = page.getByRole("region", { name: "Checks in this browser" });
      await checks.getByRole("listitem").first().waitFor();
      await page.evaluate("scrollTo(0, 0)");
    }),
  ],
];

const LOOKS = [
  [
    "light",
    { colorScheme: "light", viewport: { width: 1280, height: 860 } },
    ["overview", "group", "pkp", "usage-key", "runner", "credit"],
  ],
  [
    "dark",
    { colorScheme: "dark", viewport: { width: 1280, height: 860 } },
    ["overview", "runner", "activity", "trust"],
  ],
  [
    "phone",
    { colorScheme: "light", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
    ["overview", "usage-key", "activity"],
  ],
] as const;

async function photograph(browser: Browser, baseUrl: string, prepared: Prepared): Promise<void> {
  for (const [look, options, names] of LOOKS) {
    const page = await (
      await browser.newContext({ ...options, locale: "en-US", timezoneId: "UTC", reducedMotion: "reduce" })
    ).newPage();
    await page.goto(baseUrl);
    if (look === "light") await save(page, "entrance-light");
    await page.getByLabel("API key", { exact: true }).fill(prepared.key);
    await press("Sign in")(page);
    await page.getByRole("region", { name: "At a glance" }).waitFor();
    for (const [name, go] of pictures(prepared)) {
      if (!(names as readonly string[]).includes(name)) continue;
      await go(page);
      await save(page, `${name}-${look}`);
      await page.keyboard.press("Escape");
    }
    await page.context().close();
  }
}

/** Screens that are longer than the window are captured in full. */
const WHOLE = ["pkp", "runner", "trust"];
const TALLEST_PX = 2_200;

async function save(page: Page, name: string): Promise<void> {
  await page.waitForLoadState("networkidle");
  // Move the pointer away, so that nothing is highlighted.
  await page.mouse.move(0, 0);
  const usual = page.viewportSize();
  if (usual !== null && WHOLE.some((screen) => name.startsWith(`${screen}-`)))
    await page.setViewportSize({ ...usual, height: await heightOf(page) });
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  if (usual !== null) await page.setViewportSize(usual);
  console.log(`docs/images/${name}.png`);
}

const heightOf = async (page: Page): Promise<number> =>
  Math.min(TALLEST_PX, Number(await page.evaluate("document.documentElement.scrollHeight")));

async function main(): Promise<void> {
  if (!existsSync(CHROMIUM)) throw new Error("The pictures need Debian's browser: apt-get install chromium");
  mkdirSync(FOLDER, { recursive: true });
  const stack = await startStack();
  const asRoot = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...asRoot, "--disable-dev-shm-usage"] });
  try {
    await photograph(browser, stack.baseUrl, await prepare(stack));
  } finally {
    await browser.close();
    await stack.stop();
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  },
);
