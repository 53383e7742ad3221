/**
 * Everyday management of a ChainSecured account, each write reviewed and signed by a wallet: rename, restrict, see who
 * can use what, run, revoke, remove, transfer.
 */
import { expect } from "chai";
import { Wallet } from "ethers";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { Dashboard } from "../../support/dashboard";
import { useProvider, useStack } from "../../support/stack";

const CODE =
  "async function main({ pkpId, message }) { return { signature: await Actions.signMessage({ pkpId, message }) }; }";

describe("managing a ChainSecured account in the dashboard", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  const provider = useProvider();
  let wallet: BrowserWallet;
  let dashboard: Dashboard;

  before(async () => {
    wallet = await BrowserWallet.funded(provider());
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, (page) => wallet.install(page));
    await dashboard.makeOwnAccount("Self", "Test Wallet");
  });
  after(async () => {
    await dashboard?.close();
  });

  const rename = async (to: string, functionName: string): Promise<void> => {
    await dashboard.fill("Name", to);
    await dashboard.confirm("Save");
    await dashboard.reviewAndSend(functionName);
  };

  /** The review says this of what changes: of what, now, afterwards. */
  const changes = (row: RegExp): Promise<void> =>
    dashboard.dialog().getByRole("region", { name: "What changes" }).getByRole("row", { name: row }).waitFor();

  it("creates a PKP, once despite double clicks, renames it, and denies ops of it", async () => {
    await dashboard.go("PKPs");
    await dashboard.createPkp("Hot wallet");
    await dashboard.confirm("Sign the request");
    await dashboard.reviewed("registerWalletDerivation");
    const before = wallet.asked.length;
    await dashboard.dialog().getByRole("button", { name: "Sign and send" }).dblclick();
    await dashboard.page.getByRole("link", { name: "Hot wallet" }).click();
    expect(wallet.asked.slice(before), "a double click is one signature").to.deep.equal(["eth_sendTransaction"]);
    await dashboard.press("Rename");
    await rename("Treasury", "updatePkpMetadata");
    await dashboard.page.getByRole("heading", { level: 1, name: "Treasury" }).waitFor();
    await dashboard.press("Change");
    await dashboard.page.getByRole("checkbox", { name: "Read the private key itself" }).uncheck();
    await dashboard.confirm("Save");
    await dashboard.reviewAndSend("setPkpOps");
    await dashboard.says("never getPrivateKey");
  });

  it("adds and renames an action, and lists it with the PKP in a group shown as a matrix", async () => {
    await dashboard.go("Actions");
    await dashboard.press("Add action");
    await dashboard.fill("Name", "Sign");
    await dashboard.fill("Code", CODE);
    await dashboard.confirm("Add action");
    await dashboard.reviewAndSend("addAction");
    await dashboard.row(/Sign/).getByRole("button", { name: "Rename" }).click();
    await rename("Sign a payout", "updateActionMetadata");
    await dashboard.row(/Sign a payout/).waitFor();
    await dashboard.go("Groups");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "First name");
    await dashboard.page.getByRole("checkbox", { name: "Sign a payout" }).check();
    await dashboard.confirm("Create group");
    await changes(/The group “First name” No such group\. “Sign a payout” may use no PKP/);
    await dashboard.reviewAndSend("addGroup");
    await dashboard.page.getByRole("link", { name: "First name" }).click();
    await dashboard.press("Rename");
    await rename("Payouts", "updateGroupMetadata");
    await dashboard.page.getByRole("heading", { level: 1, name: "Payouts" }).waitFor();
    await dashboard.press("Choose PKPs");
    await dashboard.page.getByRole("checkbox", { name: "Treasury" }).check();
    await dashboard.confirm("Save");
    await dashboard.reviewAndSend("changeGroupMembers");
    await dashboard.page.getByRole("cell", { name: "✓ may use" }).waitFor();
  });

  it("creates a usage key, changes it, and shows who can use the PKP", async () => {
    await dashboard.fillUsageKey("Bot", "Payouts");
    await dashboard.confirm("Create usage key");
    await dashboard.confirm("Sign the request");
    await dashboard.keepSecret();
    await changes(/The key “Bot” No such key\. Run actions in “Payouts”\./);
    expect(await dashboard.dialog().getByRole("cell", { name: "No such PKP." }).count(), "it is no PKP").to.equal(0);
    await dashboard.reviewAndSend("multicall");
    await dashboard.row(/Bot/).getByRole("button", { name: "Edit" }).click();
    await dashboard.page.getByLabel("Expires", { exact: true }).selectOption({ label: "In 30 days" });
    await dashboard.confirm("Save");
    await changes(/The key “Bot” Run actions in “Payouts”\. Run actions in “Payouts”\. Until/);
    await dashboard.reviewAndSend("multicall");
    await dashboard.row(/Bot.*Payouts.*20\d\d/).waitFor();
    await dashboard.saysWhoCanUse("Treasury", /Sign a payout.*Payouts.*Bot/);
    await dashboard.page.getByRole("list", { name: "Groups that list it" }).getByText("Payouts").waitFor();
  });

  it("runs with that key, and finds the run and the events", async () => {
    await dashboard.go("Runner");
    await dashboard.field("Code").fill(CODE);
    await dashboard.field("Parameters").fill('{ "message": "hi" }');
    await dashboard.page.getByLabel("Use a PKP").selectOption({ label: "Treasury" });
    await dashboard.press("Run");
    await dashboard.page.getByRole("region", { name: "Result" }).getByText("succeeded").waitFor();
    await dashboard.go("Activity");
    await dashboard.row(/Sign a payout.*Bot.*Treasury.*succeeded/).waitFor();
    await dashboard.page.getByRole("tab", { name: "Events" }).click();
    await dashboard.page.getByLabel("Event", { exact: true }).selectOption({ label: "PKP created" });
    await dashboard.row(/Treasury/).waitFor();
    expect(await dashboard.row(/Bot/).count(), "a usage key's wallet is no PKP").to.equal(0);
    await dashboard.page.getByLabel("Event", { exact: true }).selectOption({ label: "PKP added to group" });
    await dashboard.row(/group: Payouts.*PKP: Treasury/).waitFor();
    expect(await dashboard.page.getByRole("row").count()).to.equal(2);
    await dashboard.go("Credit");
    await dashboard.row(/Run.*−\$0\.01/).waitFor();
  });

  it("revokes, removes, renames the account and transfers it; the former owner is signed out", async () => {
    await dashboard.go("Usage keys");
    await dashboard.choose(dashboard.row(/Bot/), "Revoke");
    await dashboard.confirm("Revoke");
    await dashboard.reviewAndSend("removeUsageApiKey");
    await dashboard.says("No usage keys yet");
    await dashboard.go("Groups");
    await dashboard.page.getByRole("link", { name: "Payouts" }).click();
    await dashboard.press("Remove group");
    await dashboard.confirm("Remove group");
    await dashboard.reviewAndSend("removeGroup");
    await dashboard.says("No groups yet");
    await dashboard.go("Account");
    await dashboard.press("Rename");
    await rename("Self Ltd", "updateAccountMetadata");
    await dashboard.says("Self Ltd");
    const heir = Wallet.createRandom().address;
    await dashboard.press("Transfer ownership");
    await dashboard.fill("Address of the new owner", heir.toLowerCase());
    await dashboard.dialog().getByText(heir).waitFor();
    await dashboard.fill("Its last six characters, once more", "000000");
    await dashboard.says("These are not the last six characters of that address.");
    await dashboard.fill("Its last six characters, once more", heir.slice(-6));
    expect(
      await dashboard.dialog().getByRole("button", { name: "Transfer ownership" }).getAttribute("aria-disabled"),
    ).to.equal("true");
    await dashboard.page.getByRole("checkbox", { name: /only the new owner can undo this/ }).check();
    await dashboard.confirm("Transfer ownership");
    await dashboard.reviewAndSend("transferOwnership");
    await dashboard.says("The account has a new owner. You have been signed out.");
    await dashboard.press("Connect wallet");
    await dashboard.says("This wallet owns no account here yet.");
    dashboard.expectCalm();
  });
});
