/** The dashboard for everybody: no violation of the accessibility rules on any screen, light or dark, wide or narrow; the keyboard alone; lists of any length. */
import { expect } from "chai";
import { getAddress, id } from "ethers";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../../support/browser";
import { Dashboard, SCREENS } from "../../support/dashboard";
import { newApiAccount, NO_PERMISSIONS } from "../../support/http";
import { useStack } from "../../support/stack";

/** Narrow, the same elements stand one below the other: a look at three of the screens is enough for the rules, all are looked at for their width. */
const NARROW_LOOK: ReadonlySet<string> = new Set(["Overview", "Usage keys", "Runner"]);

describe("the dashboard for everybody", function () {
  this.timeout(120_000);
  const stack = useStack();
  let browser: Browser;
  let key: string;

  before(async () => {
    browser = await launchBrowser();
    const { key: made, api } = await newApiAccount(stack().baseUrl);
    key = made;
    const pkp = await api.must("/create_wallet", { name: "Treasury", description: "signs payouts" });
    const group = await api.must("/add_group", {
      group_name: "Payouts",
      group_description: "",
      pkp_ids_permitted: [pkp["wallet_address"]],
      cid_hashes_permitted: [`0x${"0".repeat(64)}`],
    });
    await api.must("/add_action", { action_ipfs_cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX", name: "Hello", description: "" });
    await api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      name: "Bot",
      execute_in_groups: [group["group_id"]],
      expiration: String(Math.floor(Date.now() / 1000) + 86_400),
    });
    await api.must("/run_action", { code: "async function main() { return 1; }" });
  });
  after(() => browser?.close());

  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["dark, on a phone", { colorScheme: "dark", viewport: { width: 390, height: 844 } }],
  ] as const) {
    it(`breaks no rule on any screen, ${name}`, async () => {
      const dashboard = await Dashboard.open(browser, stack().baseUrl, options);
      const isNarrow = name.endsWith("phone");
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
        if (!isNarrow || NARROW_LOOK.has(screen)) expect(await dashboard.violations(), screen).to.deep.equal([]);
        const overflow = (await dashboard.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")) as number;
        expect(overflow, `${screen} scrolls sideways`).to.equal(0);
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
      expect(await dashboard.page.getByRole("button", { name: button, exact: true }).count(), `one control named ${button}`).to.equal(1);
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

  it("scrolls, searches and sorts a list of 10,000 wallets", async () => {
    const dashboard = await Dashboard.open(browser, stack().baseUrl);
    // Ten thousand registrations would take the chain half a minute: the list's pages are made here, in the shape of a real one.
    await dashboard.page.route("**/list_wallets?*", async (route) => {
      const query = new URL(route.request().url()).searchParams;
      const answer = await route.fetch();
      const [real] = (await answer.json()) as object[];
      const [from, size] = [Number(query.get("page_number")) * Number(query.get("page_size")), Number(query.get("page_size"))];
      const items = Array.from({ length: Math.max(0, Math.min(size, MANY - from)) }, (_, at) => walletOf(real ?? {}, from + at));
      await route.fulfill({ json: items, headers: { ...answer.headers(), "x-total-count": String(MANY) } });
    });
    await dashboard.signIn(key);
    await dashboard.go("PKPs");
    await dashboard.page
      .getByRole("status")
      .filter({ hasText: /^10,000$/ })
      .waitFor();
    expect(await dashboard.page.getByRole("row").count(), "only what is in view is drawn").to.be.lessThan(80);
    await dashboard.page.getByRole("rowgroup", { name: /PKPs/ }).evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await dashboard.row(/wallet 9999/).waitFor();
    await dashboard.page.getByRole("searchbox", { name: "Search PKPs" }).fill("wallet 4711");
    await dashboard.row(/wallet 4711/).waitFor();
    expect(await dashboard.page.getByRole("row").count()).to.equal(2);
    await dashboard.page.getByRole("searchbox", { name: "Search PKPs" }).fill("");
    await dashboard.page.getByRole("button", { name: "Number" }).click();
    await dashboard.page.getByRole("button", { name: "Number" }).click();
    await dashboard.row(/wallet 9999/).waitFor();
    await dashboard.close();
  });
});

const MANY = 10_000;

function walletOf(real: object, number: number): object {
  const address = getAddress(id(`wallet ${number}`).slice(0, 42));
  return { ...real, id: String(number + 1), wallet_address: address, pkp_id: address, name: `wallet ${number}` };
}
