/** Failures around a page: the connection, the key, the reload, the back button. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { cidOfCode } from "../../../protocol/cid";
import { newApiAccount, NO_PERMISSIONS, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

/** Longer than the interval at which the account is refreshed. */
const LOOKS_AGAIN_MS = 20_000;

describe("the dashboard when things go wrong", function () {
  this.timeout(60_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;
  let account: ApiAccount;

  beforeEach(async () => {
    account = await newApiAccount(stack().baseUrl);
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
  });
  afterEach(() => dashboard.close());

  it("names what is wrong with a key", async () => {
    for (const [key, sentence] of [
      ["not a key", "This is no API key"],
      [Buffer.alloc(32, 7).toString("base64"), "This key is unknown here"],
    ] as const) {
      await dashboard.page.getByLabel("API key", { exact: true }).fill(key);
      await dashboard.press("Sign in");
      await dashboard.says(sentence);
    }
  });

  it("reports a lost connection, and continues when it is back", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Groups");
    await dashboard.page.route("**/core/v1/**", (route) => route.abort());
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Later");
    await dashboard.confirm("Create group");
    await dashboard.dialog().getByText("The service could not be reached").waitFor();
    await dashboard.page.unroute("**/core/v1/**");
    await dashboard.confirm("Create group");
    await dashboard.row(/Later/).waitFor();
  });

  it("says on every screen that its data may be old while the service is unavailable", async () => {
    await dashboard.page.clock.install();
    await dashboard.page.reload();
    await dashboard.signIn(account.key);
    await dashboard.go("Groups");
    await dashboard.says("No groups yet");
    await dashboard.page.route("**/core/v1/**", (route) => route.abort());
    await dashboard.page.clock.fastForward(LOOKS_AGAIN_MS);
    await dashboard.says("The service cannot be reached. What you see may be old.");
    await account.api.must("/add_group", { group_name: "Meanwhile", group_description: "" });
    await dashboard.page.unroute("**/core/v1/**");
    await dashboard.press("Try again");
    await dashboard.page.getByText("What you see may be old.").waitFor({ state: "hidden" });
    await dashboard.row(/Meanwhile/).waitFor();
  });

  it("says of nothing that it is not there while its list cannot be read", async () => {
    await dashboard.page.route("**/list_*", (route) => route.fulfill({ status: 500, body: "" }));
    await dashboard.signIn(account.key);
    for (const place of ["groups", "groups/1", `pkps/0x${"a1".repeat(20)}`, `actions/0x${"a1".repeat(32)}`]) {
      await dashboard.page.goto(`${stack().baseUrl}/#/${place}`);
      const main = dashboard.page.getByRole("main");
      await main.getByText("HTTP 500").first().waitFor();
      expect(await main.innerText()).to.not.match(/No groups yet|No such group|Not in this account/);
    }
  });

  it("says of nothing that there is none to choose while its list cannot be read", async () => {
    const cid = await cidOfCode("async function main() { return 1; }");
    await account.api.must("/add_action", { action_ipfs_cid: cid, name: "One", description: "" });
    await dashboard.page.route(/list_(groups|wallets)\b/, (route) => route.fulfill({ status: 500, body: "" }));
    await dashboard.signIn(account.key);
    await dashboard.go("Actions");
    await dashboard.page.getByRole("link", { name: "One" }).click();
    await dashboard.press("Add this action to a group");
    await dashboard.dialog().getByText("HTTP 500").waitFor();
    expect(await dashboard.dialog().innerText()).to.not.include("There are no groups yet");
    await dashboard.confirm("Cancel");
    await dashboard.go("Groups");
    await dashboard.press("Create group");
    await dashboard.dialog().getByRole("group", { name: "PKPs" }).getByText("HTTP 500").waitFor();
    expect(await dashboard.dialog().innerText()).to.not.include("There are no PKPs yet");
    await dashboard.confirm("Cancel");
    await dashboard.go("Usage keys");
    await dashboard.press("Create usage key");
    await dashboard.dialog().getByText("HTTP 500").waitFor();
  });

  it("adds an action to no other group than the one that was chosen", async () => {
    const cid = await cidOfCode("async function main() { return 2; }");
    await account.api.must("/add_action", { action_ipfs_cid: cid, name: "Two", description: "" });
    const [first, second] = await Promise.all(
      ["First", "Second"].map((group_name) => account.api.must("/add_group", { group_name, group_description: "" })),
    );
    await dashboard.page.clock.install();
    await dashboard.signIn(account.key);
    await dashboard.go("Actions");
    await dashboard.page.getByRole("link", { name: "Two" }).click();
    await dashboard.press("Add this action to a group");
    const choice = dashboard.dialog().getByLabel("Group", { exact: true });
    await choice.selectOption("Second");
    await account.api.must("/remove_group", { group_id: second?.["group_id"] });
    await dashboard.page.clock.fastForward(LOOKS_AGAIN_MS);
    await dashboard.page.evaluate('window.dispatchEvent(new Event("visibilitychange"))');
    await choice.getByRole("option", { name: "Choose a group" }).waitFor({ state: "attached" });
    expect(await choice.inputValue()).to.equal("");
    await choice.selectOption("First");
    await dashboard.confirm("Add to group");
    await dashboard.says("Done: ");
    const { body } = await account.api.get(`/list_actions?group_id=${String(first?.["group_id"])}`);
    expect(body).to.have.length(1);
  });

  it("keeps the page when a part of it does not load", async () => {
    await dashboard.signIn(account.key);
    await dashboard.page.route("**/assets/Palette*", (route) => route.abort());
    await dashboard.page.getByRole("button", { name: /^Search/ }).click();
    await dashboard.says("A part of this page did not load.");
    await dashboard.page.unroute("**/assets/Palette*");
    await dashboard.go("Groups");
  });

  it("says in words that a change takes long, and that nothing is done twice", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Groups");
    let answer = (): void => undefined;
    const held = new Promise<void>((resolve) => (answer = resolve));
    await dashboard.page.route("**/add_group", (route) => held.then(() => route.continue()));
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Late");
    await dashboard.page.clock.install();
    await dashboard.confirm("Create group");
    await dashboard.page.clock.fastForward(LOOKS_AGAIN_MS);
    await dashboard.dialog().getByText("This takes longer than usual: the service waits for the chain.").waitFor();
    await dashboard.looksRight("a change that takes long", "[role=dialog]");
    answer();
    await dashboard.row(/Late/).waitFor();
    // Its message is over no button that is pressed next.
    await dashboard.says("Done: Create the group “Late”.");
    const isInTheWay = await dashboard.page.evaluate(`(() => {
      const message = document.querySelector(".message");
      const { left, top, width, height } = message.getBoundingClientRect();
      const at = document.elementFromPoint(left + width / 2, top + height / 2);
      return at === message || at.closest("button") !== null;
    })()`);
    expect(isInTheWay).to.equal(false);
  });

  it("creates nothing twice when an answer is lost", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Groups");
    let lost = 0;
    await dashboard.page.route("**/add_group", async (route) => {
      if (lost++ > 3) return route.continue();
      await route.fetch();
      return route.abort();
    });
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Once");
    await dashboard.confirm("Create group");
    await dashboard.dialog().getByText("The service could not be reached").waitFor();
    await dashboard.confirm("Create group");
    await dashboard.row(/Once/).waitFor();
    const answer = await fetch(`${stack().baseUrl}/core/v1/list_groups`, { headers: { "x-api-key": account.key } });
    expect(await answer.json()).to.have.length(1);
  });

  it("freezes again after an unfreeze, although the answer to an earlier freeze was lost", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Account");
    await dashboard.loseAnswers("**/freeze_account");
    await dashboard.press("Freeze account");
    await dashboard.confirm("Freeze account");
    await dashboard.dialog().getByText("The service could not be reached").waitFor();
    await dashboard.confirm("Cancel");
    await account.api.must("/unfreeze_account", {});
    await dashboard.press("Refresh");
    await dashboard.press("Freeze account");
    await dashboard.confirm("Freeze account");
    await dashboard.says("Done: Freeze the account.");
    await dashboard.button("Unfreeze account").waitFor();
    expect((await account.api.get("/account")).body).to.include({ frozen: true });
  });

  it("does what a dialog asked when it opened, whatever others change meanwhile", async () => {
    const pkps = await Promise.all(
      ["Mine", "Theirs"].map(async (name) => await account.api.must("/create_wallet", { name, description: "" })),
    );
    const [mine, theirs] = pkps.map((one) => String(one["wallet_address"]));
    const { group_id } = await account.api.must("/add_group", { group_name: "Shared", group_description: "" });
    await dashboard.page.clock.install();
    await dashboard.signIn(account.key);
    await dashboard.go("Groups");
    await dashboard.page.getByRole("link", { name: "Shared" }).click();
    await dashboard.press("Choose PKPs");
    await dashboard.dialog().getByRole("checkbox", { name: /Mine/ }).check();
    await account.api.must("/add_pkp_to_group", { group_id, pkp_id: theirs });
    const readAgain = dashboard.page.waitForResponse(/list_wallets_in_group/);
    await dashboard.page.clock.fastForward(LOOKS_AGAIN_MS);
    await dashboard.page.evaluate('window.dispatchEvent(new Event("visibilitychange"))');
    await (await readAgain).finished();
    await dashboard.confirm("Save");
    await dashboard.says("Done: Change the PKPs");
    const { body } = await account.api.get(`/list_wallets_in_group?group_id=${String(group_id)}`);
    expect((body as Record<string, unknown>[]).map((one) => one["wallet_address"])).to.have.members([mine, theirs]);

    await dashboard.go("Account");
    await dashboard.press("Freeze account");
    await account.api.must("/freeze_account", {});
    await dashboard.page.clock.fastForward(LOOKS_AGAIN_MS);
    await dashboard.says("The account is frozen");
    await dashboard.dialog().getByRole("heading", { name: "Freeze the account?" }).waitFor();
    await dashboard.confirm("Freeze account");
    await dashboard.says("Done: Freeze the account.");
    expect((await account.api.get("/account")).body).to.include({ frozen: true });
  });

  it("signs out, with the reason, when its key is revoked elsewhere", async () => {
    const made = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, can_create_pkps: true });
    await dashboard.signIn(String(made["usage_api_key"]));
    await dashboard.go("PKPs");
    await account.api.must("/remove_usage_api_key", { usage_api_key: made["api_key_hash"] });
    await dashboard.createPkp("Too late");
    await dashboard.says("This key has been revoked. You have been signed out.");
    await dashboard.button("Sign in").waitFor();
  });

  it("lists what needs attention: no group, a key that soon expires, a group that lists anything", async () => {
    await account.api.must("/create_wallet", { name: "Alone", description: "" });
    await dashboard.signIn(account.key);
    const needs = dashboard.page.getByRole("region", { name: "Needs attention" });
    await needs.getByText("There is no group yet, so nothing can use your PKPs.").waitFor();
    const group = await account.api.must("/add_group", {
      group_name: "Wide",
      group_description: "",
      cid_hashes_permitted: [`0x${"0".repeat(64)}`],
    });
    const expiration = String(Math.floor(Date.now() / 1000) + 86_400);
    await account.api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      name: "Brief",
      execute_in_groups: [group["group_id"]],
      expiration,
    });
    await dashboard.page.reload();
    await dashboard.signIn(account.key);
    await needs.getByText(/“Brief” will expire on/).waitFor();
    await needs.getByText("The group “Wide” lists anything").waitFor();
    expect(await needs.getByText("There is no group yet").count()).to.equal(0);
  });

  it("stores a key for this tab only when asked, and deletes it on sign-out", async () => {
    await dashboard.signIn(account.key);
    await dashboard.page.reload();
    await dashboard.page.getByRole("checkbox", { name: "Remember in this tab" }).check();
    await dashboard.signIn(account.key);
    await dashboard.go("Groups");
    await dashboard.page.reload();
    await dashboard.page.getByRole("heading", { level: 1, name: "Groups", exact: true }).waitFor();
    await dashboard.press("Sign out");
    await dashboard.page.reload();
    await dashboard.button("Sign in").waitFor();
    expect(
      await dashboard.page.evaluate("JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)])"),
    ).to.not.include(account.key);
  });

  it("keeps a remembered key while the service cannot be reached", async () => {
    await dashboard.page.getByRole("checkbox", { name: "Remember in this tab" }).check();
    await dashboard.signIn(account.key);
    await dashboard.page.route("**/core/v1/**", (route) => route.abort());
    await dashboard.page.reload();
    await dashboard.says("The key is still remembered: load this page again.");
    await dashboard.page.unroute("**/core/v1/**");
    await dashboard.page.reload();
    await dashboard.signedIn();
  });

  it("reads everything again with Refresh, and says when it was read", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Groups");
    await account.api.must("/add_group", { group_name: "Elsewhere", group_description: "" });
    await dashboard.says(/As of \d/);
    await dashboard.press("Refresh");
    await dashboard.row(/Elsewhere/).waitFor();
  });

  it("offers a usage key what it may do, and nothing else", async () => {
    await account.api.must("/add_group", { group_name: "Mine", group_description: "" });
    const permissions = { ...NO_PERMISSIONS, can_create_pkps: true, manage_ipfs_ids_in_groups: [1] };
    const made = await account.api.must("/add_usage_api_key", permissions);
    await dashboard.signIn(String(made["usage_api_key"]));
    const offered: string[] = [];
    for (const screen of ["PKPs", "Groups", "Actions", "Usage keys"] as const) {
      await dashboard.go(screen);
      await dashboard.page.waitForLoadState("networkidle");
      offered.push(...(await dashboard.page.getByRole("main").getByRole("button").allInnerTexts()));
    }
    await dashboard.go("Groups");
    await dashboard.page.getByRole("link", { name: "Mine" }).click();
    await dashboard.button("List an action").waitFor();
    offered.push(...(await dashboard.page.getByRole("main").getByRole("button").allInnerTexts()));
    const changes = offered.filter((name) => /^(Create|Add|Remove|Rename|Edit|Revoke|List|Choose)/.test(name));
    expect(changes).to.deep.equal(["Create PKP", "List an action"]);
  });

  it("signs every tab of the browser out", async () => {
    await dashboard.signIn(account.key);
    const other = await dashboard.context.newPage();
    await other.goto(stack().baseUrl);
    await other.getByLabel("API key", { exact: true }).fill(account.key);
    await other.getByRole("button", { name: "Sign in", exact: true }).click();
    await other.getByRole("navigation", { name: "Main" }).waitFor();
    await dashboard.press("Sign out");
    await other.getByText("You signed out in another tab.").waitFor();
  });

  it("supports the browser's back and forward buttons", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("PKPs");
    await dashboard.go("Trust");
    await dashboard.page.goBack();
    await dashboard.page.getByRole("heading", { level: 1, name: "PKPs", exact: true }).waitFor();
    await dashboard.page.goForward();
    await dashboard.page.getByRole("heading", { level: 1, name: "Trust", exact: true }).waitFor();
  });
});
