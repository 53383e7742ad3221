/** From a refusal to its remedy, from rules to a policy, from a name to its page; and what it all cost. */
import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { actionHashOf } from "../../../protocol/ids";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount, NO_PERMISSIONS, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const CODE = "async function main() { return 41 + 1; }";
const ALICE = `0x${"a1".repeat(20)}`;

describe("journeys in the dashboard", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;
  let account: ApiAccount;

  beforeEach(async () => {
    account = await newApiAccount(stack().baseUrl);
    dashboard = await Dashboard.open(browser(), stack().baseUrl, { acceptDownloads: true });
  });
  afterEach(() => dashboard.close());
  const result = () => dashboard.page.getByRole("region", { name: "Result" });

  it("say why a run is refused, grant what is missing with one button, and show the run and its action", async () => {
    const { api } = account;
    const key = String((await api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "Bot" }))["usage_api_key"]);
    const cid = (await api.post("/get_lit_action_ipfs_id", CODE)).body;
    const group = { group_name: "Answers", group_description: "" };
    await api.must("/add_group", group);
    await api.must("/add_action_to_group", { group_id: "1", action_ipfs_cid: cid });
    await dashboard.signIn(account.key);
    await dashboard.go("Runner");
    await dashboard.page.getByRole("textbox", { name: "Code" }).fill(CODE);
    await dashboard.page.getByLabel("Run with").selectOption("another");
    await dashboard.page.getByLabel("Usage key", { exact: true }).fill(key);
    await dashboard.press("Run");
    const why = dashboard.page.getByRole("region", { name: "Why?" });
    await why.getByText("The key may not run actions in any group.").waitFor();
    expect(await dashboard.violations("[aria-label='Why?']")).to.deep.equal([]);
    await why.getByRole("button", { name: "Let “Bot” run in “Answers”" }).click();
    await why.getByText("It is permitted: the same run would start now.").waitFor();
    await dashboard.press("Run");
    await result().getByText("42", { exact: true }).waitFor();
    await result().getByText("The same run from your program").click();
    await result().getByRole("radio", { name: "Python" }).check({ force: true });
    await result().getByRole("region", { name: "Python code" }).getByText("urllib.request").waitFor();
    await result().getByRole("link", { name: "Show this run" }).click();
    const details = dashboard.page.getByRole("region", { name: "Details" });
    await details.getByText("succeeded").waitFor();
    await details.getByText("Bot").waitFor();
    await dashboard.looksRight("a run's page");
    await details.getByRole("link").first().click();
    await dashboard.page.getByRole("region", { name: "Groups that list it" }).getByText("Answers").waitFor();
    await dashboard.page.getByRole("region", { name: "The code of this CID" }).getByText("41 + 1").waitFor();
    await dashboard.looksRight("an action's page");
    await dashboard.page
      .getByRole("region", { name: "Code", exact: true })
      .getByRole("button", { name: "Run" })
      .click();
    await dashboard.page.getByRole("heading", { level: 1, name: "Runner" }).waitFor();
    await result().getByRole("button", { name: "Download receipt" }).waitFor();
    await dashboard.go("Activity");
    const [download] = await Promise.all([dashboard.page.waitForEvent("download"), dashboard.press("Export CSV")]);
    expect(await readFile(await download.path(), "utf8")).to.match(/started_at,.*\r\n".*"Bot".*succeeded/);
    await dashboard.go("Credit");
    await dashboard.row(/The account key.*\$0\.0[4-9]/).waitFor();
    await dashboard.row(/Bot.*\$0\.01/).waitFor();
    dashboard.expectCalm();
  });

  it("keep the answer of a run that another was begun beside", async () => {
    const code = "async function main() { return 'slow'; }";
    const cid = (await account.api.post("/get_lit_action_ipfs_id", code)).body;
    const group = { group_name: "Slow", group_description: "", cid_hashes_permitted: [actionHashOf(cid as never)] };
    await account.api.must("/add_group", group);
    await dashboard.signIn(account.key);
    await dashboard.go("Runner");
    await dashboard.page.getByRole("textbox", { name: "Code" }).fill(code);
    const [ran, arrives] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    let runs = 0;
    await dashboard.page.route("**/run_action", async (route) => {
      if ((runs += 1) > 1) return route.continue();
      const response = await route.fetch();
      ran.resolve(undefined);
      await arrives.promise;
      return route.fulfill({ response });
    });
    await dashboard.press("Run");
    await ran.promise;
    await dashboard.go("Activity");
    await dashboard.go("Runner");
    await dashboard.press("Run");
    await dashboard.page.getByRole("alert").waitFor();
    arrives.resolve(undefined);
    await dashboard.press("Show the last result again");
    await result().getByText('"slow"').waitFor();
    dashboard.expectCalm();
  });

  it("build a policy from sentences, try it, and add it; and find everything by its name", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Policies");
    await dashboard.page.getByRole("textbox", { name: "To these addresses" }).fill(ALICE);
    await dashboard.fill("At most, each time", "0,125");
    await dashboard.says("The amount is no number: write it like 0.25 or 1,000.");
    await dashboard.fill("At most, each time", "0.5");
    await dashboard.page.getByText("Hours and approvers").click();
    await dashboard.fill("Only in these hours (UTC)", "8-18");
    const signs = dashboard.page.getByRole("list", { name: "What it signs" });
    await signs
      .getByText(/Signs transfers on chain \d+, of at most 0.5 of the coin each, to 0xa1a1a1…a1a1a1/)
      .waitFor();
    await signs.getByText("Only from 8 to 18 h UTC.").waitFor();
    const dryRun = dashboard.page.getByRole("region", { name: "Try it" });
    await dashboard.fill("Recipient", ALICE);
    await dashboard.fill("Hour (UTC)", "9");
    await dashboard.fill("Amount", "0.6");
    await dryRun.getByText("It would refuse: the amount is above its limit.").waitFor();
    await dashboard.fill("Amount", "0.5");
    await dryRun.getByText("It would sign this.").waitFor();
    await dashboard.looksRight("the builder of policies");
    await dashboard.press("Add as an action");
    await dashboard.fill("Name", "Small payouts");
    await dashboard.confirm("Add action");
    await dashboard.says("Done: Add the action “Small payouts”.");
    await dashboard.dialog().waitFor({ state: "hidden" });
    await dashboard.page.keyboard.press("Control+k");
    await dashboard.page.getByRole("combobox", { name: /^Search screens/ }).waitFor();
    await dashboard.page.keyboard.type("small");
    await dashboard.page.getByRole("option", { name: /Small payouts/ }).waitFor();
    await dashboard.looksRight("the search", "[role=dialog]");
    await dashboard.page.keyboard.press("Enter");
    await dashboard.page.getByRole("heading", { level: 1, name: "Small payouts" }).waitFor();
    await dashboard.says(/Signs transfers on chain/);
    dashboard.expectCalm();
  });

  it("refuse no common way to write a sum", async () => {
    await dashboard.signIn(account.key);
    for (const [text, cents] of [
      ["7.5", "750"],
      ["$20", "2000"],
      ["1,000", "100000"],
    ] as const) {
      await dashboard.go("Usage keys");
      await dashboard.press("Create usage key");
      await dashboard.fill("Name", `cap ${cents}`);
      await dashboard.fill("Spending cap in dollars", text);
      await dashboard.confirm("Create usage key");
      await dashboard.keepSecret();
      const keys = (await account.api.get(`/list_api_keys?search=${cents}`)).body as { balance: string }[];
      expect(keys[0]?.balance, text).to.equal(cents);
    }
  });
});
