/** What a ChainSecured owner is told, and offered next, when a part of a write is lost on the way. */
import { expect } from "chai";
import type { Locator } from "playwright-core";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { Dashboard } from "../../support/dashboard";
import { useProvider, useStack } from "../../support/stack";

const BY_SERVICE = /The service pays the network fee/;
const RELAY = "**/core/v1/relay";
const APART = "**/assets/apart-calls*";

describe("the dashboard of a ChainSecured owner when things go wrong", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  const provider = useProvider();
  let wallet: BrowserWallet;
  let dashboard: Dashboard;

  afterEach(() => dashboard?.close());

  const open = async (ether?: string): Promise<void> => {
    wallet = await BrowserWallet.funded(provider(), { ether });
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, (page) => wallet.install(page));
  };
  const offered = (name: string): Locator => dashboard.dialog().getByRole("button", { name, exact: true });
  const offeredCall = (functionName: string): Locator =>
    dashboard.dialog().getByRole("listitem", { name: `Call 1: ${functionName}` });
  const createGroup = async (name: string): Promise<void> => {
    await dashboard.press("Create group");
    await dashboard.fill("Name", name);
    await dashboard.confirm("Create group");
  };

  /** The wallet's part has loaded what decodes calls: the review loads it once more, under a name of its own. */
  const loadApart = async (): Promise<void> => {
    await dashboard.page.route("**/assets/Review*", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replaceAll("calls-", "apart-calls-") });
    });
  };

  it("lets nothing be signed or collected before it shows what is signed", async () => {
    await open();
    await dashboard.makeOwnAccount("Reader", "Test Wallet");
    await dashboard.go("Groups");
    await loadApart();
    let lose = (): void => undefined;
    const held = new Promise<void>((resolve) => (lose = resolve));
    await dashboard.page.route(APART, (route) => held.then(() => route.abort()));
    await Promise.all([dashboard.page.waitForRequest(APART), createGroup("Unread")]);
    expect([await offered("Sign and send").count(), await offered("Collect").count()]).to.deep.equal([0, 0]);
    lose();
    await dashboard.dialog().getByText("A part of this page did not load.").waitFor();
    expect([await offered("Sign and send").count(), await offered("Collect").count()]).to.deep.equal([0, 0]);
    await dashboard.page.unroute(APART);
    await dashboard.page.route(APART, async (route) =>
      route.fulfill({ response: await route.fetch({ url: route.request().url().replace("apart-", "") }) }),
    );
    await dashboard.confirm("Try again");
    await dashboard.reviewed("addGroup");
    await offeredCall("addGroup").getByText("Unread").waitFor();
    await dashboard.confirm("Sign and send");
    await dashboard.row(/Unread/).waitFor();
    dashboard.expectCalm();
  });

  it("shows what is signed while the browser is offline and the wallet is not", async () => {
    await open();
    await dashboard.makeOwnAccount("Offline", "Test Wallet");
    await dashboard.go("Groups");
    await createGroup("Loaded");
    await dashboard.reviewAndSend("addGroup");
    await dashboard.row(/Loaded/).waitFor();
    await dashboard.context.setOffline(true);
    await createGroup("Unseen");
    await dashboard.reviewed("addGroup");
    await offeredCall("addGroup").getByText("Unseen").waitFor();
    dashboard.expectCalm();
  });

  it("does not offer a write again whose answer was lost while the service may send it", async () => {
    await open("0");
    await dashboard.makeOwnAccount("Penniless", "Test Wallet");
    await dashboard.go("Groups");
    const lostWrite = async (): Promise<void> => {
      await dashboard.loseAnswers(RELAY);
      await dashboard.confirm("Sign and send");
      await dashboard.dialog().getByText("The service gave no final answer: it may have sent the call").waitFor();
      await dashboard.page.unroute(RELAY);
      await dashboard.dialog().getByText("Deadline", { exact: true }).waitFor();
      expect(await offered("Sign and send").count()).to.equal(0);
    };
    await createGroup("Once");
    await dashboard.reviewed("addGroup", BY_SERVICE);
    await lostWrite();
    await dashboard.looksRight("a call that the service may send", "[role=dialog]");
    await dashboard.confirm("Close");
    await dashboard.row(/Once/).waitFor();
    await dashboard.dialog().waitFor({ state: "hidden" });

    await createGroup("Collected");
    await dashboard.reviewed("addGroup", BY_SERVICE);
    await dashboard.confirm("Collect");
    await dashboard.press("Send all");
    await dashboard.reviewed("multicall", BY_SERVICE);
    await lostWrite();
    await dashboard.confirm("Close");
    await dashboard.says("1 change collected, perhaps on chain already");
    await dashboard.press("Show");
    await dashboard.says("These changes may have been sent: look for them on chain before you send them again.");
    dashboard.expectCalm();
  });

  const newAccount = async (name: string): Promise<void> => {
    await dashboard.press("Create account");
    await dashboard.page.getByRole("radio", { name: "With my wallet" }).check({ force: true });
    await dashboard.fill("Name", name);
    await dashboard.confirm("Create account");
    await dashboard.confirm("Test Wallet");
  };
  const reviewOfNewAccount = async (name: string): Promise<void> => {
    await newAccount(name);
    await dashboard.says("newChainSecuredAccount");
  };

  it("says that an account was made whose owner declined to sign in, and then only signs in", async () => {
    await open();
    await reviewOfNewAccount("Hesitant");
    wallet.refused.add("eth_signTypedData_v4");
    await dashboard.confirm("Sign and send");
    await dashboard.dialog().getByRole("alert").waitFor();
    expect(await dashboard.dialog().getByRole("alert").innerText())
      .to.match(/^The account was made\. /)
      .and.not.include("Nothing was sent");
    await dashboard.looksRight("an account that was made, without a sign-in", "[role=dialog]");
    wallet.refused.clear();
    const asked = wallet.asked.length;
    await dashboard.confirm("Sign and send");
    await dashboard.signedIn();
    expect(wallet.asked.slice(asked)).to.deep.equal(["eth_signTypedData_v4"]);
    dashboard.expectCalm();
  });

  it("signs in to an account that was made although the answer was lost", async () => {
    await open("0");
    await reviewOfNewAccount("Lost");
    await dashboard.loseAnswers(RELAY);
    await dashboard.confirm("Sign and send");
    await dashboard.dialog().getByText("The service gave no final answer: it may have sent the call").waitFor();
    await dashboard.confirm("Sign and send");
    await dashboard.signedIn();
    dashboard.expectCalm();
  });

  it("sends a wallet whose account was made before to sign in", async () => {
    await open();
    await reviewOfNewAccount("Gone away");
    wallet.refused.add("eth_signTypedData_v4");
    await dashboard.confirm("Sign and send");
    await dashboard.dialog().getByRole("alert").waitFor();
    wallet.refused.clear();
    await dashboard.page.reload();
    await newAccount("Back again");
    await dashboard.dialog().getByText("This wallet has made its account already").waitFor();
    await dashboard.confirm("Close");
    await dashboard.press("Connect wallet");
    await dashboard.signedIn();
    dashboard.expectCalm();
  });
});
