/** No dialog violates an accessibility rule, light or dark, or is wider than a phone. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { Dashboard } from "../../support/dashboard";
import { populatedAccount } from "../../support/populatedAccount";
import { useProvider, useStack } from "../../support/stack";

const PHONE = { width: 390, height: 844 };

describe("the dashboard's dialogs", function () {
  this.timeout(180_000);
  const stack = useStack();
  const browser = useBrowser();
  const provider = useProvider();
  let dashboard: Dashboard;

  afterEach(() => dashboard?.close());

  /** The page with the dialog, light; then the dialog alone, dark and on a phone. */
  const looksRight = async (what: string): Promise<void> => {
    const { page } = dashboard;
    const wide = page.viewportSize() ?? PHONE;
    await dashboard.dialog().waitFor();
    expect(await dashboard.violations(), what).to.deep.equal([]);
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize(PHONE);
    await dashboard.looksRight(`${what}, dark, on a phone`, "[role=dialog]");
    await page.setViewportSize(wide);
    await page.emulateMedia({ colorScheme: "light" });
  };
  const openWithWallet = async (): Promise<BrowserWallet> => {
    const wallet = await BrowserWallet.funded(provider());
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, (page) => wallet.install(page));
    return wallet;
  };

  it("violate no rule with an account's key, and name each button once", async () => {
    const { key } = await populatedAccount(stack().baseUrl, "Treasury");
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
    await dashboard.signIn(key);
    for (const [screen, button] of [
      ["PKPs", "Create PKP"],
      ["Groups", "Create group"],
      ["Actions", "Add action"],
      ["Actions", "Rename"],
      ["Usage keys", "Create usage key"],
      ["Usage keys", "Edit"],
      ["Usage keys", "Revoke all"],
      ["Credit", "Add funds"],
      ["Account", "Rename"],
      ["Account", "Freeze account"],
      ["Account", "Convert to ChainSecured"],
      ["Account", "Transfer ownership"],
    ] as const) {
      await dashboard.go(screen);
      await dashboard.press(button);
      await looksRight(button);
      const named = await dashboard.page.getByRole("button", { name: button, exact: true }).count();
      expect(named, `controls named ${button}`).to.be.at.most(1);
      await dashboard.page.keyboard.press("Escape");
      await dashboard.dialog().waitFor({ state: "hidden" });
    }
    dashboard.expectCalm();
  });

  it("violate no rule while a wallet reviews, signs and collects", async () => {
    await openWithWallet();
    await dashboard.makeOwnAccount("Own", "Test Wallet");
    await dashboard.go("PKPs");
    await dashboard.createPkp("Vault");
    await dashboard.button("Sign the request").waitFor();
    await looksRight("a first signature");
    await dashboard.confirm("Sign the request");
    await dashboard.reviewed("registerWalletDerivation");
    await looksRight("the review of a PKP");
    await dashboard.confirm("Collect");
    await dashboard.says("1 change collected");
    await dashboard.looksRight("collected changes");
    await dashboard.press("Show");
    await looksRight("the list of collected changes");
    await dashboard.page.keyboard.press("Escape");
    await dashboard.dialog().waitFor({ state: "hidden" });
    await dashboard.go("Account");
    await dashboard.press("Freeze account");
    await dashboard.confirm("Freeze account");
    await dashboard.reviewed("setAccountFrozen");
    await looksRight("the review of a freeze");
    dashboard.expectCalm();
  });

  it("violate no rule at sign-in: wallets, another network, a Safe", async () => {
    const wallet = await openWithWallet();
    await dashboard.press("Create account");
    await dashboard.page.getByRole("radio", { name: "With my wallet" }).check({ force: true });
    await dashboard.fill("Name", "Own");
    await looksRight("Create account");
    await dashboard.confirm("Create account");
    await dashboard.says("Test Wallet");
    await looksRight("the choice of a wallet");
    await dashboard.page.keyboard.press("Escape");
    await dashboard.dialog().waitFor({ state: "hidden" });
    await dashboard.press("My account belongs to a Safe");
    await looksRight("signing in for a Safe");
    await dashboard.page.keyboard.press("Escape");
    await dashboard.dialog().waitFor({ state: "hidden" });
    wallet.moveTo(1n);
    await dashboard.press("Connect wallet");
    await dashboard.says("Your wallet is on another network");
    await looksRight("another network");
    dashboard.expectCalm();
  });

  it("violate no rule while a new key is shown, and during a transfer of ownership", async () => {
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
    await dashboard.press("Create account");
    await dashboard.fill("Name", "Ada");
    await dashboard.confirm("Create account");
    await dashboard.says("Keep your API key");
    await looksRight("the new key");
    await dashboard.keepSecret();
    await dashboard.go("Account");
    await dashboard.press("Transfer ownership");
    await dashboard.fill("Address of the new owner", `0x${"12".repeat(20)}`);
    await dashboard.fill("Its last six characters, once more", "000000");
    await looksRight("a transfer to an address that was mistyped");
    dashboard.expectCalm();
  });
});
