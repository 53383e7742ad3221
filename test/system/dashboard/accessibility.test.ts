/**
 * Accessibility of the dashboard: no violation of the rules on any screen, light or dark, wide or narrow; lists of any
 * length.
 */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { fundedWallet } from "../../support/chain";
import { count } from "../../support/counts";
import { Dashboard, SCREENS, type Screen } from "../../support/dashboard";
import { populatedAccount } from "../../support/populatedAccount";
import { accountWithWallets } from "../../support/manyWallets";
import { useProvider, useStack } from "../../support/stack";

const LONG_NAME = "Treasury of the northern branch, for whatever leaves it on working days before noon";
/** Rules that a style sheet for the dark alone may break. */
const OF_COLOURS = ["color-contrast", "link-in-text-block"];
/** Its charts are drawn anew when the colours change. */
const DRAWN: Screen = "Overview";
const MANY = count(2_000, 10_000);

describe("the dashboard's accessibility", function () {
  this.timeout(180_000);
  const stack = useStack();
  const browser = useBrowser();
  const provider = useProvider();
  let key: string;

  before(async () => {
    ({ key } = await populatedAccount(stack().baseUrl, LONG_NAME));
  });

  for (const [name, options] of [
    ["light or dark", {}],
    ["light or dark, on a phone", { viewport: { width: 390, height: 844 } }],
  ] as const) {
    it(`violates no rule on any screen, ${name}`, async () => {
      const dashboard = await Dashboard.open(browser(), stack().baseUrl, { colorScheme: "light", ...options });
      const { page } = dashboard;
      const looksRight = async (what: string): Promise<void> => {
        await dashboard.loaded();
        await dashboard.looksRight(what);
        await page.emulateMedia({ colorScheme: "dark" });
        const inTheDark = await dashboard.violations("html", what === DRAWN ? undefined : OF_COLOURS);
        expect(inTheDark, `${what}, dark`).to.deep.equal([]);
        await page.emulateMedia({ colorScheme: "light" });
      };
      await looksRight("before signing in");
      await dashboard.press("Create account");
      await looksRight("Create account");
      await dashboard.confirm("Cancel");
      await page.getByLabel("API key", { exact: true }).fill(key);
      await dashboard.press("Sign in");
      await page.getByRole("region", { name: "At a glance" }).waitFor();
      const go = async (screen: Screen): Promise<void> => {
        const menu = dashboard.button("Menu");
        if (await menu.isVisible()) await menu.click();
        await dashboard.go(screen);
      };
      for (const screen of SCREENS) {
        await go(screen);
        await looksRight(screen);
      }
      for (const [screen, link, heading] of [
        ["PKPs", LONG_NAME, LONG_NAME],
        ["Groups", "Payouts", "Payouts"],
        ["Actions", "Hello", "Hello"],
        ["Activity", /\d:\d\d/, /^Run /],
        ["Activity", "Why was it refused?", "Why was it refused?"],
      ] as const) {
        await go(screen);
        await page.getByRole("main").getByRole("link", { name: link }).first().click();
        await page.getByRole("heading", { level: 1, name: heading }).waitFor();
        await looksRight(String(heading));
      }
      dashboard.expectCalm();
      await dashboard.close();
    });
  }

  it(
    `scrolls, searches and sorts a list of ${MANY.toLocaleString("en-US")} wallets, read over HTTP with a key or ` +
      "from the chain with a wallet",
    async () => {
      const owner = await fundedWallet(provider(), "1000");
      const reader = await accountWithWallets(stack().baseUrl, owner, MANY);
      for (const mode of ["key", "wallet"] as const) {
        const wallet = new BrowserWallet("Test Wallet", owner, 31337n);
        const dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, (page) => wallet.install(page));
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
    },
  );
});
