/**
 * The whole flow by the keyboard alone: every step is reached with Tab from the previous step's focus, and the focus is
 * visible.
 */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { Dashboard, type Screen } from "../../support/dashboard";
import { Keyboard } from "../../support/keyboard";
import { useProvider, useStack } from "../../support/stack";

describe("the dashboard by the keyboard alone", function () {
  this.timeout(180_000);
  const stack = useStack();
  const browser = useBrowser();
  const provider = useProvider();
  let dashboard: Dashboard;
  let keyboard: Keyboard;

  afterEach(() => dashboard?.close());

  const open = async (wallet?: BrowserWallet): Promise<void> => {
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, async (page) => wallet?.install(page));
    keyboard = new Keyboard(dashboard.page);
  };
  const button = (name: string) => dashboard.page.getByRole("button", { name, exact: true });
  const inDialog = (name: string) => dashboard.dialog().getByRole("button", { name, exact: true });
  const go = async (screen: Screen): Promise<void> => {
    const link = dashboard.page.getByRole("link", { name: screen, exact: true });
    await keyboard.press(link, "Enter");
    await dashboard.page.getByRole("heading", { level: 1, name: screen, exact: true }).waitFor();
  };
  /** Types the name into the open form, and submits it from there. */
  const nameAndSend = async (name: string): Promise<void> => {
    await keyboard.type(dashboard.field("Name"), name);
    await dashboard.page.keyboard.press("Enter");
  };
  const keepKey = async (): Promise<string> => {
    const secret = await dashboard.page.getByRole("status", { name: /^New / }).innerText();
    await keyboard.press(dashboard.page.getByRole("checkbox", { name: "I have stored this key" }), "Space");
    await keyboard.press(button("Continue"), "Enter");
    return secret.trim();
  };

  it("goes from a new account to a signature, and through the following screens to sign-out", async () => {
    await open();
    await keyboard.press(button("Create account"), "Enter");
    await keyboard.press(dashboard.page.getByRole("radio", { name: "With an API key" }), "ArrowRight");
    expect(await dashboard.page.getByRole("radio", { name: "With my wallet" }).isChecked()).to.equal(true);
    await keyboard.press(dashboard.page.getByRole("radio", { name: "With my wallet" }), "ArrowLeft");
    await nameAndSend("Ada");
    const key = await keepKey();

    await keyboard.press(button("Create PKP"), "Enter");
    await nameAndSend("My first PKP");
    await keyboard.press(button("Add action"), "Enter");
    await keyboard.press(inDialog("Add action"), "Enter");
    await keyboard.press(button("Create group"), "Enter");
    await nameAndSend("My first group");
    await keyboard.press(button("Create usage key"), "Enter");
    await nameAndSend("My first key");
    await keepKey();
    await keyboard.press(button("Run"), "Enter");
    await dashboard.says("Your PKP signed.");

    await go("Runner");
    await keyboard.press(dashboard.page.getByRole("link", { name: "Skip to the content" }), "Enter");
    for (const example of ["Keep a secret", "Sign a message"])
      await keyboard.choose(dashboard.page.getByLabel("Open an example"), example);
    await keyboard.to(dashboard.field("Code"));
    await keyboard.to(dashboard.field("Parameters"));
    await keyboard.press(button("Run"), "Enter");
    const result = dashboard.page.getByRole("region", { name: "Result" });
    await result.getByText("succeeded").waitFor();
    await keyboard.press(result.getByText("The same run from your program"), "Enter");
    await result.getByRole("region", { name: "curl command" }).waitFor();

    await go("Activity");
    await keyboard.press(dashboard.page.getByRole("tab", { name: "Runs" }), "ArrowRight");
    await dashboard
      .row(/PKP added to group/)
      .first()
      .waitFor();
    await go("Groups");
    await keyboard.press(dashboard.page.getByRole("link", { name: "My first group" }), "Enter");
    await keyboard.press(button("Choose PKPs"), "Enter");
    await keyboard.press(dashboard.page.getByRole("checkbox", { name: "My first PKP" }), "Space");
    await keyboard.press(inDialog("Save"), "Enter");
    await dashboard.says("no PKP listed");
    await go("Usage keys");
    await keyboard.press(dashboard.row(/My first key/).getByRole("button", { name: /^More for/ }), "Enter");
    const focusedItem = (name: string) => dashboard.page.locator("[role=menuitem]:focus", { hasText: name });
    await focusedItem("Limits").waitFor();
    await dashboard.page.keyboard.press("End");
    await focusedItem("Revoke").waitFor();
    await dashboard.page.keyboard.press("Enter");
    await keyboard.press(inDialog("Revoke"), "Enter");
    await dashboard.says("No usage keys yet");
    await keyboard.press(button("Sign out"), "Enter");
    await keyboard.type(dashboard.page.getByLabel("API key", { exact: true }), key);
    await keyboard.press(button("Sign in"), "Enter");
    await dashboard.signedIn();
    dashboard.expectCalm();
  });

  it("has a wallet's owner review, collect and send", async () => {
    await open(await BrowserWallet.funded(provider()));
    await keyboard.press(button("Create account"), "Enter");
    await keyboard.press(dashboard.page.getByRole("radio", { name: "With an API key" }), "ArrowRight");
    await nameAndSend("Own");
    await keyboard.press(inDialog("Test Wallet"), "Enter");
    await keyboard.press(inDialog("Sign and send"), "Enter");
    await dashboard.signedIn();
    await keyboard.press(button("Create PKP"), "Enter");
    await nameAndSend("Vault");
    await keyboard.press(inDialog("Sign the request"), "Enter");
    await dashboard.reviewed("registerWalletDerivation");
    await keyboard.press(inDialog("Collect"), "Enter");
    await dashboard.says("1 change collected");
    await keyboard.press(button("Send all"), "Enter");
    await dashboard.reviewed("multicall");
    await keyboard.press(inDialog("Sign and send"), "Enter");
    await dashboard.says(/Done: .*in block \d+/);
    await go("PKPs");
    await keyboard.press(dashboard.page.getByRole("link", { name: "Vault" }), "Enter");
    await dashboard.page.getByRole("heading", { level: 1, name: "Vault" }).waitFor();
    dashboard.expectCalm();
  });
});
