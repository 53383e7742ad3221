/**
 * An account owned by a Safe: a user without rights prepares its changes and saves them as one file, and a real Safe's
 * signers execute that file.
 */
import { readFile } from "node:fs/promises";
import { expect } from "chai";
import type { HDNodeWallet } from "ethers";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { fundedWallet } from "../../support/chain";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount } from "../../support/http";
import { deploySafe, type SafeCall, type TestSafe } from "../../support/safe";
import { useProvider, useStack } from "../../support/stack";

describe("the dashboard and a Safe", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  const provider = useProvider();
  let signers: HDNodeWallet[];
  let safe: TestSafe;

  before(async () => {
    signers = await Promise.all([1, 2].map(() => fundedWallet(provider())));
    safe = await deploySafe(await fundedWallet(provider()), signers, 2);
  });

  it("receives an account, and executes with two signatures what a user without rights has prepared", async () => {
    const { key, api } = await newApiAccount(stack().baseUrl);
    const { id: accountId } = (await api.get("/account")).body as { id: string };
    const giver = await Dashboard.open(browser(), stack().baseUrl);
    await giver.signIn(key);
    await giver.go("Account");
    await giver.press("Transfer ownership");
    await giver.fill("Address of the new owner", safe.address);
    await giver.fill("Its last six characters, once more", safe.address.slice(-6));
    await giver.page.getByRole("checkbox", { name: /only the new owner can undo this/ }).check();
    await giver.confirm("Transfer ownership");
    await giver.says("The account has a new owner. You have been signed out.");
    await giver.page.getByLabel("API key", { exact: true }).fill(key);
    await giver.press("Sign in");
    await giver.page.getByRole("alert").waitFor();
    giver.expectCalm();
    await giver.close();

    const wallet = new BrowserWallet("Signer One", signers[0] as HDNodeWallet, 31337n);
    const desk = await Dashboard.open(browser(), stack().baseUrl, { acceptDownloads: true }, (page) =>
      wallet.install(page),
    );
    await desk.press("My account belongs to a Safe");
    await desk.fill("Safe address", safe.address);
    await desk.fill("Account id", accountId);
    await desk.confirm("Continue");
    await desk.signedIn();
    await desk.says("preparing for a multisig");
    await desk.go("Groups");
    for (const name of ["First", "Second"]) {
      await desk.press("Create group");
      await desk.fill("Name", name);
      await desk.confirm("Create group");
      await desk.reviewed("addGroup", /The multisig pays the network fee/);
      expect(
        await desk.dialog().getByRole("button", { name: "Sign and send" }).count(),
        "nothing can be sent from here",
      ).to.equal(0);
      await desk.confirm("Collect");
    }
    const [download] = await Promise.all([desk.page.waitForEvent("download"), desk.press("Save as Safe file")]);
    const { transactions } = JSON.parse(await readFile(await download.path(), "utf8")) as { transactions: SafeCall[] };
    expect(wallet.asked.filter((method) => method !== "eth_requestAccounts")).to.deep.equal([]);
    await safe.execute(transactions);
    await desk.page.reload();
    await desk.press("My account belongs to a Safe");
    await desk.fill("Safe address", safe.address);
    await desk.fill("Account id", accountId);
    await desk.confirm("Continue");
    await desk.go("Groups");
    await desk.row(/First/).waitFor();
    await desk.row(/Second/).waitFor();
    await desk.go("Activity");
    await desk.says("a multisig cannot sign for it");
    await desk.go("Triggers");
    await desk.says("A multisig cannot sign in here: read the triggers with a key of the account.");
    expect(await desk.button("Create trigger").count(), "it needs a signature").to.equal(0);
    expect(await desk.page.getByText("No triggers yet").count(), "they were not read").to.equal(0);
    await desk.page.goto(`${stack().baseUrl}/#/activity/1-run`);
    await desk.says("A multisig cannot sign in here: read the run with a key of the account.");
    desk.expectCalm();
    await desk.close();
  });
});
