/** Budgets and limits in the dashboard: what is used is shown, a policy gets a budget, a key gets limits. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { codeOf, newApiAccount, NO_PERMISSIONS, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const RECIPIENT = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const SPENDS = `async function main({ budget, amount, limit, window }) {
  return await Actions.spend({ budget, amount, limit, window });
}`;

describe("the dashboard's budgets and limits", function () {
  this.timeout(120_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;
  let account: ApiAccount;

  beforeEach(async () => {
    account = await newApiAccount(stack().baseUrl);
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
  });
  afterEach(() => dashboard.close());

  it("show for each action and name what is used of the limit, and when it starts again", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Budgets");
    await dashboard.says("No budgets yet");
    await account.api.must("/add_group", {
      group_name: "any",
      group_description: "",
      cid_hashes_permitted: [`0x${"0".repeat(64)}`],
    });
    const spend = (budget: string, amount: string, window: string): Promise<unknown> =>
      account.api.must("/run_action", { code: SPENDS, js_params: { budget, amount, limit: "1000000", window } });
    await spend("usdc-daily", "30000", "day");
    await spend("fees", "1000000", "hour");
    await dashboard.press("Read again");
    // An eighth of the limit is leased, and counts as used.
    const daily = dashboard.row(/usdc-daily/);
    await daily.getByText("125,000").waitFor();
    await daily.getByText("of 1,000,000").waitFor();
    expect(await daily.getByRole("meter", { name: "Used of usdc-daily" }).getAttribute("aria-valuenow")).to.equal(
      "125",
    );
    await dashboard.row(/fees/).getByText("hour", { exact: true }).waitFor();
    dashboard.expectCalm();
  });

  it("are part of policies that the builder makes", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Policies");
    await dashboard.fill("To these addresses", RECIPIENT);
    await dashboard.fill("At most, each time", "0.25");
    await dashboard.fill("At most, all together", "1.5");
    await dashboard.says("In each day together at most 1.5 of the coin, counted on the chain as “value”.");
    await dashboard.page.getByLabel("Counted per").selectOption("hour");
    await dashboard.says(/In each hour together at most 1\.5/);
    await dashboard.page.getByText("Code", { exact: true }).click();
    await dashboard.says(/"budgets":\[\{"amount":"value","limit":"1500000000000000000","name":"value","window":"hour"/);
    dashboard.expectCalm();
  });

  it("of a key are set, shown, enforced and lifted", async () => {
    const made = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "In the page" });
    await dashboard.signIn(account.key);
    await dashboard.go("Usage keys");
    await dashboard.choose(dashboard.row(/In the page/), "Limits");
    await dashboard.fill("Dollars in 24 hours", "lots");
    await dashboard.confirm("Save");
    await dashboard.says(/The credit is no sum/);
    for (const [dollars, runs] of [
      ["0.00", ""],
      ["1", "0"],
    ] as const) {
      await dashboard.fill("Dollars in 24 hours", dollars);
      await dashboard.fill("Runs in a minute", runs);
      await dashboard.confirm("Save");
      await dashboard.says("A limit is more than 0.");
    }
    await dashboard.fill("Dollars in 24 hours", "2.50");
    await dashboard.fill("Runs in a minute", "5");
    await dashboard.fill("Web pages that may use it", "https://app.example");
    await dashboard.confirm("Save");
    await dashboard.dialog().waitFor({ state: "hidden" });
    const listed = async (): Promise<unknown> => (await account.api.get("/usage_key_limits")).body;
    expect(await listed()).to.deep.equal([
      {
        api_key_hash: made["api_key_hash"],
        cents_per_day: 250,
        runs_per_minute: 5,
        origins: ["https://app.example"],
        cents_used: 0,
        runs_used: 0,
      },
    ]);
    await dashboard.choose(dashboard.row(/In the page/), "Limits");
    await dashboard.says("$0.00 are used.");
    await dashboard.fill("Dollars in 24 hours", "");
    await dashboard.fill("Runs in a minute", "");
    await dashboard.fill("Web pages that may use it", "");
    await dashboard.confirm("Save");
    await dashboard.dialog().waitFor({ state: "hidden" });
    expect(await listed()).to.deep.equal([]);
    expect(codeOf(await account.api.post("/usage_key_limits", { usage_api_key: `0x${"1".repeat(64)}` }))).to.equal(
      "unknown_usage_key",
    );
    dashboard.expectCalm();
  });

  it("of a key that others have set meanwhile are shown, and not undone", async () => {
    const made = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "Shared" });
    await dashboard.signIn(account.key);
    await dashboard.go("Usage keys");
    const dollars = dashboard.field("Dollars in 24 hours");
    await dashboard.choose(dashboard.row(/Shared/), "Limits");
    await dollars.waitFor();
    await dashboard.confirm("Cancel");
    const limits = { cents_per_day: 400, runs_per_minute: 7, origins: [] };
    await account.api.must("/usage_key_limits", { usage_api_key: made["api_key_hash"], ...limits });
    await dashboard.choose(dashboard.row(/Shared/), "Limits");
    await dollars.waitFor();
    expect(await dollars.inputValue()).to.equal("4");
    await dashboard.fill("Runs in a minute", "8");
    await dashboard.confirm("Save");
    await dashboard.dialog().waitFor({ state: "hidden" });
    const [listed] = (await account.api.get("/usage_key_limits")).body as Record<string, unknown>[];
    expect(listed).to.include({ cents_per_day: 400, runs_per_minute: 8 });
    dashboard.expectCalm();
  });
});
