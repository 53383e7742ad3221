/**
 * `npm run screenshots`: the pictures of the dashboard that the README and docs/dashboard.md show, taken from the demo's account on a stack of its own with Debian's
 * Chromium: light, dark, and as wide as a phone.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { createClient, type Client } from "../client";
import { ACTION, makeAccount, makeUsageKey, permit } from "./demo/account";
import { startStack } from "./dev/stack";

const FOLDER = join(__dirname, "..", "..", "docs", "images");
const CHROMIUM = "/usr/bin/chromium";
const DAY_SECONDS = 86_400;
const quiet = (): void => undefined;

interface Prepared {
  readonly key: string;
  readonly usageKey: string;
  readonly pkp: string;
}

/** The demo's account with a little more in it, so that lists are lists. */
async function prepare(baseUrl: string): Promise<Prepared> {
  const { client, key } = await makeAccount(baseUrl, quiet);
  const { pkp, group, cid } = await permit(client, quiet);
  const usageKey = await makeUsageKey(client, group, quiet);
  await furnish(client, { pkp, cid });
  const bot = createClient({ baseUrl, apiKey: usageKey });
  for (const message of ["invoice 17", "invoice 18", "invoice 19"]) await bot.runAction({ code: ACTION, js_params: { pkpId: pkp, message } });
  await bot.runAction({ code: ACTION, js_params: { message: "an invoice without a PKP" } });
  return { key, usageKey, pkp };
}

async function furnish(client: Client, { pkp, cid }: { readonly pkp: string; readonly cid: string }): Promise<void> {
  for (const [name, description] of [
    ["payouts", "signs what leaves the treasury"],
    ["oracle", "signs prices every minute"],
  ] as const) {
    const { wallet_address } = await client.createWallet({ name, description });
    const { group_id } = await client.addGroup({ group_name: name, group_description: description, pkp_ids_permitted: [wallet_address, pkp] });
    await client.addActionToGroup({ group_id, action_ipfs_cid: cid });
    const scopes = {
      can_create_groups: false,
      can_delete_groups: false,
      can_create_pkps: false,
      manage_ipfs_ids_in_groups: [],
      add_pkp_to_groups: [],
      remove_pkp_from_groups: [],
    };
    const expiration = String(Math.floor(Date.now() / 1000) + (name === "oracle" ? 4 : 90) * DAY_SECONDS);
    await client.addUsageApiKey({ name: `${name} service`, description: "", ...scopes, execute_in_groups: [group_id], expiration, balance: "2500" });
  }
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

const runTheDemo =
  (pkp: string): Go =>
  async (page) => {
    await page.getByRole("textbox", { name: "Code", exact: true }).fill(ACTION);
    await page.getByRole("textbox", { name: "Parameters", exact: true }).fill(JSON.stringify({ pkpId: pkp, message: "invoice 20" }, null, 2));
    await press("Run")(page);
    await page.getByText("succeeded").waitFor();
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
  ["runner", all(to("Runner"), runTheDemo(pkp))],
  ["activity", to("Activity")],
  ["credit", to("Credit")],
  ["trust", all(to("Trust"), press("Check now"), async (page) => page.getByText("Key namespace").last().waitFor())],
];

const LOOKS = [
  ["light", { colorScheme: "light", viewport: { width: 1280, height: 860 } }, ["overview", "group", "pkp", "usage-key", "runner", "credit"]],
  ["dark", { colorScheme: "dark", viewport: { width: 1280, height: 860 } }, ["overview", "runner", "activity", "trust"]],
  ["phone", { colorScheme: "light", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 }, ["overview", "usage-key", "activity"]],
] as const;

async function photograph(browser: Browser, baseUrl: string, prepared: Prepared): Promise<void> {
  for (const [look, options, names] of LOOKS) {
    const page = await (await browser.newContext({ ...options, locale: "en-US", timezoneId: "UTC", reducedMotion: "reduce" })).newPage();
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

async function save(page: Page, name: string): Promise<void> {
  await page.waitForLoadState("networkidle");
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  console.log(`docs/images/${name}.png`);
}

async function main(): Promise<void> {
  if (!existsSync(CHROMIUM)) throw new Error("The pictures need Debian's browser: apt-get install chromium");
  mkdirSync(FOLDER, { recursive: true });
  const stack = await startStack();
  const asRoot = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: [...asRoot, "--disable-dev-shm-usage"] });
  try {
    await photograph(browser, stack.baseUrl, await prepare(stack.baseUrl));
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
