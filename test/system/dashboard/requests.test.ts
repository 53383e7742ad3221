/** One request for one screen: how many a screen makes does not grow with the account. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount, NO_PERMISSIONS, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const MANY = 24;
const MOST_PER_SCREEN = 12;
const MOST_PER_RENAME = 4;
const ANY_ACTION = `0x${"0".repeat(64)}`;

describe("requests of the dashboard", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;
  let account: ApiAccount;
  const asked: string[] = [];

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    const pkp = (await account.api.must("/create_wallet", { name: "Treasury" }))["wallet_address"];
    const groups = Array.from({ length: MANY }, (_, at) =>
      account.api.must("/add_group", {
        group_name: `Group number ${at}`,
        group_description: "",
        pkp_ids_permitted: [pkp],
        cid_hashes_permitted: at === MANY - 1 ? [ANY_ACTION] : [`0x${"12".repeat(32)}`],
      }),
    );
    await Promise.all(groups);
    await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "Bot", execute_in_groups: ["0"] });
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
    dashboard.page.on("request", (request) => {
      if (request.url().includes("/core/v1/")) asked.push(`${request.method()} ${request.url()}`);
    });
  });
  after(() => dashboard.close());

  const during = async (act: () => Promise<void>): Promise<string[]> => {
    asked.length = 0;
    await act();
    await dashboard.page.waitForLoadState("networkidle");
    return [...asked];
  };

  it("are few on every screen, with members of all groups shown, and few after a rename", async () => {
    const first = await during(async () => {
      await dashboard.signIn(account.key);
      await dashboard.says(/lists anything: any code/);
    });
    expect(first.length, first.join("\n")).to.be.at.most(MOST_PER_SCREEN);
    const pkp = await during(async () => {
      await dashboard.go("PKPs");
      await dashboard.page.getByRole("link", { name: "Treasury" }).click();
      await dashboard.page.getByRole("row", { name: new RegExp(`Group number ${MANY - 2}.*Bot`) }).waitFor();
    });
    expect(pkp.length, pkp.join("\n")).to.be.at.most(MOST_PER_SCREEN);
    const rename = await during(async () => {
      await dashboard.press("Rename");
      await dashboard.fill("Name", "Vault");
      await dashboard.confirm("Save");
      await dashboard.page.getByRole("heading", { level: 1, name: "Vault" }).waitFor();
    });
    expect(rename.length, rename.join("\n")).to.be.at.most(MOST_PER_RENAME);
    dashboard.expectCalm();
  });
});
