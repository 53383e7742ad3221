/**
 * The dashboard of a ChainSecured owner: a wallet that really signs, each write reviewed, several as one, a Safe's
 * file, and every way a wallet can refuse.
 */
import { readFile } from "node:fs/promises";
import { expect } from "chai";
import type { Locator } from "playwright-core";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { fundedWallet } from "../../support/chain";
import { eventually } from "../../support/chainBed";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount } from "../../support/http";
import { useProvider, useStack } from "../../support/stack";

const CHAIN = 31337n;
/** How long the SDK waits for a block. */
const WAITS_MS = 180_000;

describe("the dashboard of a ChainSecured owner", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  const provider = useProvider();
  let wallet: BrowserWallet;
  let dashboard: Dashboard;

  afterEach(() => dashboard?.close());

  const open = async (chainId = CHAIN, ether?: string): Promise<void> => {
    wallet = await BrowserWallet.funded(provider(), { ether, chainId });
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, (page) => wallet.install(page));
  };
  const makeAccount = (name: string): Promise<void> => dashboard.makeOwnAccount(name, "Test Wallet");
  const reviewed = (functionName: string): Promise<void> => dashboard.reviewed(functionName);

  it("creates an account, sends every step to a signature, and signs in again with the wallet", async () => {
    await open();
    await makeAccount("Self");
    await dashboard.createPkp("Vault");
    await dashboard.confirm("Sign the request");
    await reviewed("registerWalletDerivation");
    await dashboard.confirm("Sign and send");
    await dashboard.says(/Done: Create the PKP “Vault”, in block \d+/);

    // As a wallet does after a while: it is asked again, and nothing is lost.
    wallet.locked = true;
    await dashboard.press("Add action");
    await dashboard.confirm("Add action");
    await reviewed("addAction");
    await dashboard.confirm("Sign and send");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Vault signers");
    await dashboard.confirm("Create group");
    await reviewed("addGroup");
    await dashboard.confirm("Sign and send");
    await dashboard.press("Create usage key");
    await dashboard.fill("Name", "Signer");
    await dashboard.confirm("Create usage key");
    await dashboard.confirm("Sign the request");
    await dashboard.keepSecret();
    await reviewed("multicall");
    await dashboard.confirm("Sign and send");
    await dashboard.press("Run");
    await dashboard.says("Your PKP signed.");
    dashboard.expectCalm();

    await dashboard.go("Account");
    await dashboard.says("ChainSecured");
    await dashboard.press("Sign out");
    await dashboard.press("Connect wallet");
    await dashboard.signedIn();
    await dashboard.go("PKPs");
    await dashboard.row(/Vault/).waitFor();
    await dashboard.go("Activity");
    await dashboard.row(/succeeded/).waitFor();
    await dashboard.page.getByRole("tab", { name: "Events" }).click();
    await dashboard.row(/Account created/).waitFor();
    await dashboard.go("Credit");
    await dashboard.says(/\$(20\.00|19\.99)/);
  });

  it("shows every message and call, field by field, before the wallet is asked", async () => {
    await open();
    const signed = (part: Locator) => part.getByRole("region", { name: "What you sign" });
    const message = async (type: string, part = dashboard.dialog()): Promise<void> => {
      await signed(part).getByText(type, { exact: true }).waitFor();
      const text = (await signed(part).innerText()).replaceAll(/\s+/g, " ");
      expect(text).to.match(/address 0x\w+…\w+ issuedAt .* For .* ChainSecured, version 1, chain 31337/);
    };
    await dashboard.press("Create account");
    await dashboard.page.getByRole("radio", { name: "With my wallet" }).check({ force: true });
    await dashboard.fill("Name", "Reader");
    await dashboard.fill("Description", "of what it signs");
    await dashboard.confirm("Create account");
    await dashboard.confirm("Test Wallet");
    const call = signed(dashboard.dialog()).getByRole("listitem", { name: "Call 1: newChainSecuredAccount" });
    expect((await call.innerText()).replaceAll(/\s+/g, " ")).to.equal("name Reader description of what it signs");
    await dashboard.confirm("Sign and send");
    await dashboard.signedIn();
    await dashboard.go("PKPs");
    await dashboard.createPkp("Vault");
    const asked = wallet.asked.length;
    await message("CreateWallet");
    await dashboard.confirm("Cancel");
    await dashboard.confirm("Cancel");
    await dashboard.go("Usage keys");
    await dashboard.press("Create usage key");
    await dashboard.fill("Name", "Signer");
    await dashboard.confirm("Create usage key");
    await message("AddUsageApiKey");
    expect(wallet.asked.length, "not asked yet").to.equal(asked);
    await dashboard.page.reload();
    wallet.hold("eth_signTypedData_v4");
    await dashboard.press("Connect wallet");
    await message("BillingAuth", dashboard.page.getByRole("region", { name: "Sign in" }));
    await dashboard.looksRight("a sign-in that waits for the wallet");
    wallet.release();
    await dashboard.signedIn();
    dashboard.expectCalm();
  });

  it("collects changes and sends them with one signature, or saves them as one Safe file", async () => {
    await open();
    await makeAccount("Batch");
    await dashboard.go("Groups");
    for (const name of ["First", "Second"]) {
      await dashboard.press("Create group");
      await dashboard.fill("Name", name);
      await dashboard.confirm("Create group");
      await reviewed("addGroup");
      await dashboard.confirm("Collect");
    }
    await dashboard.says("2 changes collected");
    const [download] = await Promise.all([
      dashboard.page.waitForEvent("download"),
      dashboard.press("Save as Safe file"),
    ]);
    const file = JSON.parse(await readFile(await download.path(), "utf8")) as {
      chainId: string;
      transactions: {
        to: string;
        value: string;
        contractMethod: { name: string };
        contractInputsValues: Record<string, string>;
      }[];
    };
    expect(
      file.transactions.map(({ contractMethod, contractInputsValues: { name } }) => [contractMethod.name, name]),
    ).to.deep.equal([
      ["addGroup", "First"],
      ["addGroup", "Second"],
    ]);
    expect(file.chainId).to.equal(String(CHAIN));
    expect(file.transactions.map(({ to, value }) => [to, value])).to.deep.equal(
      Array(2).fill([stack().contractAddress, "0"]),
    );
    const before = wallet.asked.filter((method) => method === "eth_sendTransaction").length;
    await dashboard.page.reload();
    await dashboard.press("Connect wallet");
    await dashboard.says("2 changes collected");
    await dashboard.press("Send all");
    await reviewed("multicall");
    for (const [at, name] of ["First", "Second"].entries())
      await dashboard
        .dialog()
        .getByRole("listitem", { name: `Call ${at + 1}: addGroup` })
        .getByText(name)
        .waitFor();
    const changes = dashboard.dialog().getByRole("region", { name: "What changes" });
    await changes.getByRole("row", { name: /Second/ }).waitFor();
    await changes.getByRole("columnheader", { name: "Afterwards" }).waitFor();
    await dashboard.confirm("Sign and send");
    await dashboard.row(/First/).waitFor();
    await dashboard.row(/Second/).waitFor();
    expect(wallet.asked.filter((method) => method === "eth_sendTransaction").length - before).to.equal(1);
    dashboard.expectCalm();
  });

  it("freezes the account and revokes every key, each in one reviewed transaction", async () => {
    await open();
    await makeAccount("Careful");
    await dashboard.go("Account");
    await dashboard.press("Freeze account");
    await dashboard.confirm("Freeze account");
    await reviewed("setAccountFrozen");
    await dashboard.confirm("Sign and send");
    await dashboard.says("The account is frozen");
    await dashboard.go("Usage keys");
    await dashboard.press("Create usage key");
    await dashboard.fill("Name", "Doomed");
    await dashboard.confirm("Create usage key");
    await dashboard.confirm("Sign the request");
    await dashboard.keepSecret();
    await reviewed("multicall");
    await dashboard.confirm("Sign and send");
    await dashboard.press("Revoke all");
    await dashboard.confirm("Revoke all");
    await reviewed("revokeAllUsageApiKeys");
    await dashboard.confirm("Sign and send");
    await dashboard.says("No usage keys yet");
    dashboard.expectCalm();
  });

  it("accepts the user's refusal at every step, and sends nothing", async () => {
    await open();
    wallet.refused.add("eth_requestAccounts");
    await dashboard.press("Connect wallet");
    await dashboard.says("You declined in your wallet. Nothing was sent.");
    wallet.refused.clear();
    await makeAccount("Refuser");
    await dashboard.go("Groups");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Never");
    await dashboard.confirm("Create group");
    await reviewed("addGroup");
    wallet.refused.add("eth_sendTransaction");
    await dashboard.confirm("Sign and send");
    await dashboard.dialog().getByText("You declined in your wallet. Nothing was sent.").waitFor();
    await dashboard.confirm("Cancel");
    await dashboard.confirm("Cancel");
    await dashboard.says("No groups yet");
    await dashboard.go("PKPs");
    await dashboard.createPkp("Never");
    wallet.refused.add("eth_signTypedData_v4");
    await dashboard.confirm("Sign the request");
    await dashboard.dialog().getByText("You declined in your wallet. Nothing was sent.").waitFor();
    dashboard.expectCalm();
  });

  it("detects another chain and has the wallet switch", async () => {
    await open(1n);
    await dashboard.press("Connect wallet");
    await dashboard.says("Your wallet is on another network");
    wallet.refused.add("wallet_switchEthereumChain");
    await dashboard.confirm("Switch network");
    await dashboard.dialog().getByText("You declined in your wallet").waitFor();
    wallet.refused.clear();
    await dashboard.confirm("Switch network");
    await dashboard.says("This wallet owns no account here yet.");
  });

  it("goes on where it was after the wallet has switched: an account is made, and one converted", async () => {
    await open(1n);
    await dashboard.press("Create account");
    await dashboard.page.getByRole("radio", { name: "With my wallet" }).check({ force: true });
    await dashboard.fill("Name", "Moved");
    await dashboard.confirm("Create account");
    await dashboard.confirm("Test Wallet");
    await dashboard.confirm("Switch network");
    await dashboard.dialog().getByText("newChainSecuredAccount").waitFor();
    await dashboard.confirm("Sign and send");
    await dashboard.signedIn();
    await dashboard.press("Sign out");
    await dashboard.signIn((await newApiAccount(stack().baseUrl)).key);
    await dashboard.go("Account");
    await dashboard.press("Convert to ChainSecured");
    wallet.moveTo(1n);
    await dashboard.confirm("Test Wallet");
    await dashboard.confirm("Switch network");
    await dashboard.says("What ends permanently");
    dashboard.expectCalm();
  });

  it("has the wallet switch back to the service's chain before anything is prepared or sent", async () => {
    await open();
    await makeAccount("Wanderer");
    await dashboard.go("Groups");
    wallet.moveTo(1n);
    wallet.refused.add("wallet_switchEthereumChain");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Here");
    await dashboard.confirm("Create group");
    await dashboard.dialog().getByText("You declined in your wallet. Nothing was sent.").waitFor();
    wallet.refused.clear();
    await dashboard.confirm("Try again");
    await reviewed("addGroup");
    wallet.moveTo(1n);
    const asked = wallet.asked.length;
    await dashboard.confirm("Sign and send");
    await dashboard.row(/Here/).waitFor();
    expect(wallet.asked.slice(asked)).to.deep.equal(["wallet_switchEthereumChain", "eth_sendTransaction"]);
    dashboard.expectCalm();
  });

  it("reports a lost connection, continues when it is back, and sends nothing twice that no block has", async () => {
    await open();
    await makeAccount("Patient");
    await dashboard.page.reload();
    await dashboard.page.route("**/assets/Review*", (route) => route.abort());
    await dashboard.press("Connect wallet");
    await dashboard.signedIn();
    await dashboard.go("Groups");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Later");
    await dashboard.confirm("Create group");
    await dashboard.dialog().getByText("A part of this page did not load.").waitFor();
    await dashboard.page.unroute("**/assets/Review*");
    wallet.offline = true;
    await dashboard.confirm("Create group");
    await dashboard.button("Try again").first().waitFor();
    wallet.offline = false;
    await dashboard.confirm("Try again");
    await dashboard.reviewAndSend("addGroup");
    await dashboard.row(/Later/).waitFor();
    wallet.unknown.add("eth_getTransactionReceipt");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Collected");
    await dashboard.confirm("Create group");
    await reviewed("addGroup");
    await dashboard.confirm("Collect");
    await dashboard.press("Send all");
    await dashboard.confirm("Sign and send");
    await dashboard.says("Sent. Waiting for a block");
    await dashboard.page.reload();
    await dashboard.press("Connect wallet");
    await dashboard.says("1 change collected, perhaps on chain already");
    await dashboard.go("Groups");
    await dashboard.page.clock.install();
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Slow");
    await dashboard.confirm("Create group");
    await dashboard.reviewAndSend("addGroup");
    const close = dashboard.dialog().getByRole("button", { name: "Close", exact: true });
    await dashboard.says("Sent. Waiting for a block");
    await eventually("it waits no longer", async () => {
      await dashboard.page.clock.fastForward(WAITS_MS);
      return (await close.count()) === 1;
    });
    expect(await dashboard.dialog().getByRole("button", { name: "Sign and send" }).count()).to.equal(0);
    await dashboard.looksRight("a transaction that no block has", "[role=dialog]");
    await close.click();
    await dashboard.row(/Slow/).waitFor();
    await dashboard.dialog().waitFor({ state: "hidden" });
  });

  it("lets a wallet without coin sign only: the service sends and the credit pays", async () => {
    await open(CHAIN, "0");
    await makeAccount("Penniless");
    await dashboard.go("Groups");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Free of gas");
    await dashboard.confirm("Create group");
    await dashboard.reviewed("addGroup", /The service pays the network fee: your wallet only signs/);
    const asked = wallet.asked.length;
    await dashboard.confirm("Sign and send");
    await dashboard.row(/Free of gas/).waitFor();
    expect(wallet.asked.slice(asked)).to.deep.equal(["eth_signTypedData_v4"]);
    // Once it has coin, it is asked for what the review then says.
    await (await (await fundedWallet(provider())).sendTransaction({ to: wallet.address, value: 10n ** 18n })).wait();
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Paid for");
    await dashboard.confirm("Create group");
    await dashboard.reviewAndSend("addGroup");
    await dashboard.row(/Paid for/).waitFor();
    expect(wallet.asked.slice(asked + 1)).to.deep.equal(["eth_sendTransaction"]);
    dashboard.expectCalm();
  });

  it("converts an account created with a key: the wallet owns it, the key is revoked", async () => {
    await open();
    const { key } = await newApiAccount(stack().baseUrl);
    await dashboard.signIn(key);
    await dashboard.go("Account");
    await dashboard.press("Convert to ChainSecured");
    await dashboard.confirm("Test Wallet");
    await dashboard.says("What ends permanently");
    await dashboard.dialog().getByRole("region", { name: "What you sign" }).getByText("ConvertAccount").waitFor();
    expect(await dashboard.button("Convert account").getAttribute("aria-disabled")).to.equal("true");
    await dashboard.page.getByRole("checkbox", { name: /cannot be undone/ }).check();
    await dashboard.confirm("Convert account");
    await dashboard.go("Account");
    await dashboard.says(wallet.address);
    await dashboard.press("Sign out");
    await dashboard.page.getByLabel("API key", { exact: true }).fill(key);
    await dashboard.press("Sign in");
    await dashboard.says(/no longer a credential/);
    dashboard.expectCalm();
  });
});
