/**
 * The dashboard for everybody: no violation of the accessibility rules on any screen, light or dark, wide or narrow;
 * the keyboard alone; lists of any length.
 */
import { expect } from "chai";
import type { JsonRpcProvider } from "ethers";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { connect, fundedWallet } from "../../support/chain";
import { count } from "../../support/counts";
import { Dashboard, SCREENS } from "../../support/dashboard";
import { newApiAccount, NO_PERMISSIONS } from "../../support/http";
import { accountWithWallets } from "../../support/manyWallets";
import { useStack } from "../../support/stack";

const LONG_NAME = "Treasury of the northern branch, for whatever leaves it on working days before noon";
const MANY = count(2_000, 10_000);

describe("the dashboard for everybody", function () {
  this.timeout(180_000);
  const stack = useStack();
  let browser: Browser;
  let provider: JsonRpcProvider;
  let key: string;

  before(async () => {
    browser = await launchBrowser();
    provider = connect(stack().rpcUrl);
    const { key: made, api } = await newApiAccount(stack().baseUrl);
    key = made;
    const pkp = await api.must("/create_wallet", { name: LONG_NAME, description: "signs payouts" });
    const group = await api.must("/add_group", {
      group_name: "Payouts",
      group_description: "",
      pkp_ids_permitted: [pkp["wallet_address"]],
      cid_hashes_permitted: [`0x${"0".repeat(64)}`],
    });
    await api.must("/add_action", {
      action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX",
      name: "Hello",
      description: "",
    });
    await api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      name: "Bot",
      execute_in_groups: [group["group_id"]],
      expiration: String(Math.floor(Date.now() / 1000) + 86_400),
    });
    await api.must("/run_action", { code: "async function main() { return 1; }" });
  });
  after(async () => {
    await browser?.close();
    provider?.destroy();
  });

  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["dark, on a phone", { colorScheme: "dark", viewport: { width: 390, height: 844 } }],
  ] as const) {
    it(`breaks no rule on any screen, ${name}`, async () => {
      const dashboard = await Dashboard.open(browser, stack().baseUrl, options);
      expect(await dashboard.violations(), "before signing in").to.deep.equal([]);
      await dashboard.press("Create account");
      expect(await dashboard.violations(), "Create account").to.deep.equal([]);
      await dashboard.confirm("Cancel");
      await dashboard.page.getByLabel("API key", { exact: true }).fill(key);
      await dashboard.press("Sign in");
      await dashboard.page.getByRole("region", { name: "At a glance" }).waitFor();
      for (const screen of SCREENS) {
        const menu = dashboard.button("Menu");
        if (await menu.isVisible()) await menu.click();
        await dashboard.go(screen);
        await dashboard.page.waitForLoadState("networkidle");
        await looksRight(dashboard, screen);
      }
      for (const [screen, link] of [
        ["PKPs", LONG_NAME],
        ["Groups", "Payouts"],
      ] as const) {
        const menu = dashboard.button("Menu");
        if (await menu.isVisible()) await menu.click();
        await dashboard.go(screen);
        await dashboard.page.getByRole("link", { name: link }).click();
        await dashboard.page.getByRole("heading", { level: 1, name: link }).waitFor();
        await dashboard.page.waitForLoadState("networkidle");
        await looksRight(dashboard, link);
      }
      dashboard.expectCalm();
      await dashboard.close();
    });
  }

  it("breaks no rule in the dialogs", async () => {
    const dashboard = await Dashboard.open(browser, stack().baseUrl);
    await dashboard.signIn(key);
    for (const [screen, button] of [
      ["PKPs", "Create PKP"],
      ["Groups", "Create group"],
      ["Actions", "Add action"],
      ["Usage keys", "Create usage key"],
      ["Usage keys", "Revoke all"],
      ["Credit", "Add funds"],
      ["Account", "Transfer ownership"],
    ] as const) {
      await dashboard.go(screen);
      await dashboard.press(button);
      await dashboard.dialog().waitFor();
      expect(await dashboard.violations(), button).to.deep.equal([]);
      expect(
        await dashboard.page.getByRole("button", { name: button, exact: true }).count(),
        `one control named ${button}`,
      ).to.equal(1);
      await dashboard.page.keyboard.press("Escape");
      await dashboard.dialog().waitFor({ state: "hidden" });
    }
    await dashboard.close();
  });

  it("is used with the keyboard alone, and gives the focus back", async () => {
    const dashboard = await Dashboard.open(browser, stack().baseUrl);
    await dashboard.page.getByLabel("API key", { exact: true }).focus();
    await dashboard.page.keyboard.type(key);
    await dashboard.page.keyboard.press("Enter");
    await dashboard.signedIn();
    await dashboard.page.getByRole("link", { name: "PKPs", exact: true }).focus();
    await dashboard.page.keyboard.press("Enter");
    await dashboard.button("Create PKP").focus();
    await dashboard.page.keyboard.press("Enter");
    await dashboard.dialog().waitFor();
    await dashboard.page.keyboard.press("Escape");
    await dashboard.dialog().waitFor({ state: "hidden" });
    expect(await dashboard.page.evaluate("document.activeElement?.textContent")).to.equal("Create PKP");
    await dashboard.close();
  });

  it("breaks no rule before a wallet signs, nor with changes collected", async () => {
    const wallet = new BrowserWallet("Test Wallet", await fundedWallet(provider), 31337n);
    const dashboard = await Dashboard.open(browser, stack().baseUrl, {}, (page) => wallet.install(page));
    await dashboard.makeOwnAccount("Own", "Test Wallet");
    await dashboard.go("PKPs");
    await dashboard.createPkp("Vault");
    await dashboard.button("Sign the request").waitFor();
    expect(await dashboard.violations(), "asked for a first signature").to.deep.equal([]);
    await dashboard.confirm("Sign the request");
    await dashboard.reviewed("registerWalletDerivation");
    expect(await dashboard.violations(), "review").to.deep.equal([]);
    await dashboard.page.setViewportSize({ width: 390, height: 844 });
    expect(await dashboard.violations(), "review on a phone").to.deep.equal([]);
    await dashboard.page.emulateMedia({ colorScheme: "dark" });
    expect(await dashboard.violations(), "review in the dark").to.deep.equal([]);
    await dashboard.confirm("Collect");
    await dashboard.says("1 change collected");
    await looksRight(dashboard, "collected changes");
    await dashboard.press("Show");
    await dashboard.dialog().waitFor();
    expect(await dashboard.violations(), "the list of collected changes").to.deep.equal([]);
    dashboard.expectCalm();
    await dashboard.close();
  });

  it(`scrolls, searches and sorts a list of ${MANY.toLocaleString("en-US")} wallets, read over HTTP with a key or from the chain with a wallet`, async () => {
    const owner = await fundedWallet(provider, "1000");
    const reader = await accountWithWallets(stack().baseUrl, owner, MANY);
    for (const mode of ["key", "wallet"] as const) {
      const wallet = new BrowserWallet("Test Wallet", owner, 31337n);
      const dashboard = await Dashboard.open(browser, stack().baseUrl, {}, (page) => wallet.install(page));
      if (mode === "key") await dashboard.signIn(reader);
      else await dashboard.press("Connect wallet");
      await dashboard.signedIn();
      await dashboard.go("PKPs");
      const all = new RegExp(`^${MANY.toLocaleString("en-US")} PKPs$`);
      await dashboard.page.getByRole("status").filter({ hasText: all }).waitFor({ timeout: 60_000 });
      expect(await dashboard.page.getByRole("row").count(), "only what is in view is drawn").to.be.lessThan(80);
      await dashboard.page
        .getByRole("rowgroup", { name: /PKPs/ })
        .evaluate((element) => element.scrollTo(0, element.scrollHeight));
      await dashboard.row(new RegExp(`wallet ${MANY - 1}`)).waitFor();
      await dashboard.page.getByRole("searchbox", { name: "Search PKPs" }).fill("wallet 1471");
      await dashboard.row(/wallet 1471/).waitFor();
      expect(await dashboard.page.getByRole("row").count()).to.equal(2);
      await dashboard.says(`1 of ${MANY.toLocaleString("en-US")} PKPs`);
      await dashboard.page.getByRole("searchbox", { name: "Search PKPs" }).fill("");
      await dashboard.page.getByRole("button", { name: "Number" }).click();
      await dashboard.page.getByRole("button", { name: "Number" }).click();
      await dashboard.row(new RegExp(`wallet ${MANY - 1}`)).waitFor();
      dashboard.expectCalm();
      await dashboard.close();
    }
  });
});

/** No rule broken, and nothing that makes the page scroll sideways. */
async function looksRight(dashboard: Dashboard, what: string): Promise<void> {
  expect(await dashboard.violations(), what).to.deep.equal([]);
  const overflow = await dashboard.page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
  expect(overflow, `${what} scrolls sideways`).to.equal(0);
}
