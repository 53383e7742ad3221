/** Everyday management of an API-mode account, each screen once: create, rename, restrict, run, revoke, remove. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const CODE =
  "async function main({ pkpId, message }) { console.log('signing'); return { signature: await " +
  "Actions.signMessage({ pkpId, message }) }; }";

describe("managing an account in the dashboard", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;
  let account: ApiAccount;

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
    await dashboard.signIn(account.key);
  });
  after(async () => {
    await dashboard?.close();
  });

  const pkpAddress = async (): Promise<string> => String((await list("list_wallets"))[0]?.["wallet_address"]);
  const fetchJson = async (path: string): Promise<Record<string, unknown>> =>
    (await list(path)) as unknown as Record<string, unknown>;
  const list = async (path: string): Promise<Record<string, unknown>[]> => {
    const answer = await fetch(`${stack().baseUrl}/core/v1/${path}`, { headers: { "x-api-key": account.key } });
    return (await answer.json()) as Record<string, unknown>[];
  };

  it("creates and renames a PKP; a double click creates one", async () => {
    await dashboard.go("PKPs");
    await dashboard.says("No PKPs yet");
    await dashboard.press("Create PKP");
    await dashboard.fill("Name", "Hot wallet");
    await dashboard.dialog().getByRole("button", { name: "Create PKP", exact: true }).dblclick();
    await dashboard.row(/Hot wallet/).waitFor();
    expect(await list("list_wallets")).to.have.length(1);
    await dashboard.page.getByRole("link", { name: "Hot wallet" }).click();
    await dashboard.says("No group lists this PKP");
    await dashboard.press("Rename");
    await dashboard.fill("Name", "Treasury");
    await dashboard.confirm("Save");
    await dashboard.page.getByRole("heading", { level: 1, name: "Treasury" }).waitFor();
  });

  it("adds an action by its code, renames it, and finds it by searching", async () => {
    await dashboard.go("Actions");
    await dashboard.press("Add action");
    await dashboard.fill("Name", "Sign");
    await dashboard.fill("Description", "signs what it is given");
    await dashboard.fill("Code", CODE);
    await dashboard.confirm("Add action");
    await dashboard.row(/Sign/).getByRole("button", { name: "Rename" }).click();
    await dashboard.fill("Name", "Sign a payout");
    await dashboard.confirm("Save");
    await dashboard.row(/Sign a payout/).waitFor();
    await dashboard.page.getByRole("searchbox", { name: "Search Actions" }).fill("nothing like it");
    await dashboard.row(/Sign a payout/).waitFor({ state: "hidden" });
  });

  it("creates a group by picking, and shows it as a matrix", async () => {
    await dashboard.go("Groups");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Payouts");
    await dashboard.page.getByRole("checkbox", { name: "Treasury" }).check();
    await dashboard.page.getByRole("checkbox", { name: "Sign a payout" }).check();
    await dashboard.confirm("Create group");
    await dashboard.page.getByRole("link", { name: "Payouts" }).click();
    await dashboard.page.getByRole("cell", { name: "✓ may use" }).waitFor();
    await dashboard.page.getByRole("button", { name: "Remove Treasury from the group" }).click();
    await dashboard.says("no PKP listed");
    await dashboard.press("Choose PKPs");
    await dashboard.page.getByRole("checkbox", { name: "Treasury" }).check();
    await dashboard.confirm("Save");
    await dashboard.page.getByRole("cell", { name: "✓ may use" }).waitFor();
  });

  it("creates a usage key from plain sentences, and shows who can use the PKP", async () => {
    await dashboard.fillUsageKey("Bot", "Payouts");
    const cap = dashboard.field("Spending cap in dollars");
    await cap.fill("five");
    await dashboard.confirm("Create usage key");
    await dashboard.page.getByRole("alert").filter({ hasText: "The spending cap is no sum" }).waitFor();
    await cap.fill("");
    await cap.pressSequentially("2.50");
    expect(await cap.inputValue()).to.equal("2.50");
    await dashboard.dialog().getByText("Run actions in “Payouts”.").waitFor();
    await dashboard.dialog().getByText("Spends at most $2.50 over its life.").waitFor();
    await dashboard.confirm("Create usage key");
    await dashboard.keepSecret();
    await dashboard.row(/Bot/).getByText("of $2.50").waitFor();
    expect(await list("list_api_keys")).to.have.length(1);
    await dashboard.saysWhoCanUse("Treasury", /Sign a payout.*Payouts.*Bot/);
  });

  it("changes a key's permissions and expiration, in the user's own time zone", async () => {
    await dashboard.go("Usage keys");
    await dashboard.row(/Bot/).getByRole("button", { name: "Edit" }).click();
    await dashboard.page.getByLabel("Expires", { exact: true }).selectOption({ label: "On a day I choose" });
    for (const halfTyped of ["0002-06-07", "12035-06-07", "2035-06-07"]) {
      await dashboard.page.getByLabel("Last day").fill(halfTyped);
      expect(await dashboard.page.getByLabel("Last day").inputValue()).to.equal(halfTyped);
    }
    await dashboard.dialog().getByText("Until Jun 7, 2035.").waitFor();
    await dashboard.confirm("Save");
    await dashboard.row(/Bot.*Jun 7, 2035/).waitFor();
    const [bot] = await list("list_api_keys");
    expect(Number(bot?.["expiration"])).to.equal(new Date(2035, 5, 7, 23, 59, 59).getTime() / 1000);
  });

  it("runs the action in the Runner with that key and shows the same run as curl and SDK code", async () => {
    const pkpId = await pkpAddress();
    await dashboard.go("Runner");
    await dashboard.field("Code").fill(CODE);
    await dashboard.field("Parameters").fill(JSON.stringify({ pkpId, message: "hi" }));
    await dashboard.page.getByLabel("Run with").selectOption({ label: "Bot" });
    await dashboard.press("Run");
    const result = dashboard.page.getByRole("region", { name: "Result" });
    await result.getByText("succeeded").waitFor();
    await result.getByRole("region", { name: "Logs" }).getByText("signing").waitFor();
    await result.getByText("The same run from your program").click();
    await result
      .getByRole("region", { name: "curl command" })
      .getByText(/curl -sS/)
      .waitFor();
    expect(await result.innerText()).to.not.include(account.key);
    await dashboard.field("Parameters").fill("{");
    await dashboard.press("Run");
    await dashboard.says(/The parameters are no JSON/);
    await dashboard.press("Show the last result again");
    await result.getByText("succeeded").waitFor();
    await dashboard.go("Activity");
    await dashboard.row(/Sign a payout.*Bot.*Treasury.*succeeded/).waitFor();
    await dashboard.page.getByRole("tab", { name: "Events" }).click();
    await dashboard
      .row(/PKP added to group/)
      .first()
      .waitFor();
  });

  it("opens an example, completes the globals of actions, and lists in a group what was run", async () => {
    await dashboard.go("Runner");
    await dashboard.page.getByLabel("Open an example").selectOption({ label: "Keep a secret" });
    expect(await dashboard.field("Parameters").innerText()).to.include(await pkpAddress());
    await dashboard.field("Code").fill("async function main() { return 7; }");
    await dashboard.field("Code").press("Control+End");
    await dashboard.page.keyboard.type("\nActions.signM");
    await dashboard.page.getByRole("option", { name: /^signMessage/ }).waitFor();
    await dashboard.page.keyboard.type("; Actions.signEd");
    await dashboard.page.getByRole("option", { name: /^signEd25519AsAction/ }).waitFor();
    await dashboard.field("Code").fill("async function main() { return 7; }");
    await dashboard.field("Parameters").fill("{}");
    await dashboard.page.getByLabel("Run with").selectOption({ label: "The account key" });
    await dashboard.press("Run");
    await dashboard.press("Add this action to a group");
    await dashboard.confirm("Add to group");
    await dashboard.says("Done: List an action in “Payouts”.");
    await dashboard.press("Run");
    const result = dashboard.page.getByRole("region", { name: "Result" });
    await result.getByText("succeeded").waitFor();
    expect(await result.getByRole("region", { name: "Response" }).innerText()).to.equal("7");
    await result.getByText("The same run from your program").click();
    await result.getByRole("radio", { name: "TypeScript" }).check({ force: true });
    await result.getByRole("region", { name: "SDK code" }).getByText("client.runAction").waitFor();
    const [group] = await list("list_groups");
    expect(await list(`list_actions?group_id=${group?.["id"]}`)).to.have.length(2);
  });

  it("filters the runs by key and outcome", async () => {
    await dashboard.go("Activity");
    await dashboard.page.getByLabel("Key", { exact: true }).selectOption({ label: "Bot" });
    await dashboard.row(/Bot.*succeeded/).waitFor();
    expect(await dashboard.row(/Account key/).count()).to.equal(0);
    await dashboard.page.getByLabel("Outcome", { exact: true }).selectOption({ label: "Threw an error" });
    await dashboard.says("Nothing fits these filters.");
  });

  it("explains in words why code that no group lists is refused", async () => {
    const pkpId = await pkpAddress();
    await dashboard.go("Runner");
    await dashboard.field("Code").fill(`${CODE} // changed`);
    await dashboard.field("Parameters").fill(JSON.stringify({ pkpId, message: "hi" }));
    await dashboard.page.getByLabel("Run with").selectOption({ label: "Bot" });
    await dashboard.press("Run");
    await dashboard.page.getByRole("alert").filter({ hasText: "List the action in a group" }).waitFor();
    dashboard.expectCalm();
  });

  it("accepts text pasted or typed over highlighted code, without inline styles", async () => {
    const code = dashboard.field("Code");
    for (const text of ["const one = 'first';", "const two = 'second';", "const three = 3;"]) {
      await code.fill(text);
      expect(await code.innerText()).to.equal(text);
    }
    await code.press("Shift+Home");
    await dashboard.page.keyboard.type("'");
    expect(await code.innerText()).to.equal("'const three = 3;'");
    await code.press("ControlOrMeta+a");
    await dashboard.page.keyboard.type("42");
    expect(await code.innerText()).to.equal("42");
    dashboard.expectCalm();
  });

  it("revokes one key and all of them, and removes what was created", async () => {
    await dashboard.go("Usage keys");
    await dashboard.choose(dashboard.row(/Bot/), "Revoke");
    await dashboard.confirm("Revoke");
    await dashboard.says("No usage keys yet");
    for (const name of ["One", "Two"]) {
      await dashboard.press("Create usage key");
      await dashboard.fill("Name", name);
      await dashboard.confirm("Create usage key");
      await dashboard.keepSecret();
    }
    await dashboard.press("Revoke all");
    await dashboard.confirm("Revoke all");
    await dashboard.says("No usage keys yet");
    await dashboard.go("Groups");
    await dashboard.page.getByRole("link", { name: "Payouts" }).click();
    await dashboard.press("Remove group");
    await dashboard.confirm("Remove group");
    await dashboard.says("No groups yet");
    await dashboard.go("Account");
    await dashboard.press("Rename");
    await dashboard.fill("Name", "Acme Ltd");
    await dashboard.confirm("Save");
    await dashboard.says("Acme Ltd");
  });

  it("denies an op of a PKP, freezes and unfreezes the account", async () => {
    await dashboard.go("PKPs");
    await dashboard.page.getByRole("link", { name: "Treasury" }).click();
    await dashboard.press("Change");
    await dashboard.page.getByRole("checkbox", { name: "Read the private key itself" }).uncheck();
    await dashboard.confirm("Save");
    await dashboard.says("never getPrivateKey");
    await dashboard.go("Account");
    await dashboard.press("Freeze account");
    await dashboard.confirm("Freeze account");
    await dashboard.says("The account is frozen");
    expect((await fetchJson("account"))["frozen"]).to.equal(true);
    await dashboard.press("Unfreeze account");
    await dashboard.confirm("Unfreeze account");
    await dashboard.button("Freeze account").waitFor();
    expect((await fetchJson("account"))["frozen"]).to.equal(false);
  });

  it("verifies in the browser what a browser can, and reports that the TEE is simulated", async () => {
    await dashboard.go("Trust");
    await dashboard.page.getByText("SIMULATED", { exact: true }).waitFor();
    await dashboard.press("Check now");
    const steps = dashboard.page.getByRole("region", { name: "Checks in this browser" }).getByRole("listitem");
    await steps.first().waitFor();
    const shown = await steps.allInnerTexts();
    const passed = shown.filter((text) => text.startsWith("passed")).map((text) => text.split("\n").at(1));
    expect(shown.filter((text) => text.startsWith("failed"))).to.deep.equal([]);
    expect(passed.join("; "))
      .to.match(/Freshness/)
      .and.match(/Config document/)
      .and.match(/Event log/)
      .and.match(/Compose hash/)
      .and.match(/Evidence files/)
      .and.match(/Key namespace/);
    expect(shown.find((text) => text.includes("What is inside the image"))).to.match(
      /^not checked here\n.*\n.*--source/,
    );
    expect(await dashboard.page.getByRole("region", { name: "Check it yourself" }).innerText()).to.match(
      /npm run verify -- http\S+ .*--source \./,
    );
    dashboard.expectCalm();
  });
});
