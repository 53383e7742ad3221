/**
 * Addresses and transactions link to the explorer of the service's chain if it has one; the development chain has none.
 * Here the stack's own chain pretends to be Base Sepolia.
 */
import { expect } from "chai";
import type { Locator } from "playwright-core";
import { startStack, type Stack } from "../../../scripts/dev/stack";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { connect } from "../../support/chain";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const BASE_SEPOLIA = 84_532n;
const EXPLORER = "https://sepolia.basescan.org";

describe("links to the chain's explorer", function () {
  this.timeout(120_000);
  const withoutExplorer = useStack();
  let stack: Stack;
  const browser = useBrowser();
  let dashboard: Dashboard;

  before(async () => {
    stack = await startStack({ chainId: BASE_SEPOLIA });
  });
  after(async () => {
    await stack?.stop();
  });
  afterEach(() => dashboard?.close());

  const linkTo = (what: string): Locator =>
    dashboard.page.getByRole("link", { name: `Show ${what} in the explorer` }).first();
  const leads = async (what: string, path: string): Promise<void> => {
    const [href, target, rel] = await Promise.all(
      ["href", "target", "rel"].map((name) => linkTo(what).getAttribute(name)),
    );
    expect([href, target, rel], what).to.deep.equal([`${EXPLORER}${path}`, "_blank", "noreferrer"]);
  };

  it("are at every address and transaction of an API-mode account", async () => {
    const { key, api } = await newApiAccount(stack.baseUrl);
    const { wallet_address: pkp } = await api.must("/create_wallet", { name: "Hot", description: "" });
    const { owner } = (await api.get("/account")).body as { owner: string };
    const { events } = (await api.get("/events")).body as { events: { transaction_hash: string }[] };
    dashboard = await Dashboard.open(browser(), stack.baseUrl);
    await dashboard.signIn(key);
    await dashboard.go("PKPs");
    await leads("address", `/address/${pkp}`);
    await dashboard.page.getByRole("link", { name: "Hot" }).click();
    await dashboard.page.getByRole("heading", { level: 1, name: "Hot" }).waitFor();
    await leads("address", `/address/${pkp}`);
    for (const screen of ["Account", "Trust"] as const) {
      await dashboard.go(screen);
      await leads("contract", `/address/${stack.contractAddress}`);
      await leads("owner", `/address/${owner}`);
    }
    await dashboard.go("Activity");
    await dashboard.page.getByRole("tab", { name: "Events" }).click();
    await leads("transaction", `/tx/${events.at(-1)?.transaction_hash}`);
    dashboard.expectCalm();
  });

  it("are in what a wallet reviews", async () => {
    const provider = connect(stack.rpcUrl);
    const wallet = await BrowserWallet.funded(provider, { chainId: BASE_SEPOLIA });
    dashboard = await Dashboard.open(browser(), stack.baseUrl, {}, (page) => wallet.install(page));
    await dashboard.makeOwnAccount("Own", "Test Wallet");
    await dashboard.go("Groups");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Payouts");
    await dashboard.confirm("Create group");
    await dashboard.reviewed("addGroup");
    await leads("contract", `/address/${stack.contractAddress}`);
    await leads("owner", `/address/${wallet.address}`);
    await dashboard.confirm("Sign and send");
    await dashboard.row(/Payouts/).waitFor();
    dashboard.expectCalm();
    provider.destroy();
  });

  it("are absent where the chain has no explorer", async () => {
    const { key } = await newApiAccount(withoutExplorer().baseUrl);
    dashboard = await Dashboard.open(browser(), withoutExplorer().baseUrl);
    await dashboard.signIn(key);
    await dashboard.go("Account");
    await dashboard.button("Copy owner").waitFor();
    expect(await linkTo("owner").count()).to.equal(0);
  });
});
