/** Lists show thirty items at once on a laptop. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { cidOfCode } from "../../../protocol/cid";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount, NO_PERMISSIONS } from "../../support/http";
import { useStack } from "../../support/stack";

const LAPTOP = { width: 1440, height: 900 };
const ITEMS = 30;
/** So many that only what is in view is drawn. */
const MANY = 70;
const AT_ONCE = 25;
const ANY = `0x${"0".repeat(64)}`;
const CODE = "async function main() { return 1; }";

describe("lists in the dashboard on a laptop", function () {
  this.timeout(180_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;

  before(async () => {
    const { api, key } = await newApiAccount(stack().baseUrl);
    const times = async (count: number, work: (at: number) => Promise<unknown>): Promise<void> => {
      for (let from = 0; from < count; from += AT_ONCE)
        await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, at) => work(from + at)));
    };
    await api.must("/add_group", { group_name: "Any", group_description: "", cid_hashes_permitted: [ANY] });
    await times(MANY, (at) => api.must("/create_wallet", { name: `Vault ${at}`, description: "signs payouts" }));
    await times(ITEMS, (at) => api.must("/add_group", { group_name: `Group ${at}`, group_description: "payouts" }));
    await times(ITEMS, (at) => api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: `Bot ${at}` }));
    await times(ITEMS, async (at) =>
      api.must("/add_action", {
        action_ipfs_cid: await cidOfCode(`${CODE}//${at}`),
        name: `Sign ${at}`,
        description: "",
      }),
    );
    for (let at = 0; at < ITEMS; at += 1) await api.must("/run_action", { code: CODE });
    dashboard = await Dashboard.open(browser(), stack().baseUrl, { viewport: LAPTOP });
    await dashboard.signIn(key);
  });
  after(() => dashboard?.close());

  /** Rows of which all is in the window, without scrolling. */
  const seen = async (table: string): Promise<number> => {
    const rows = dashboard.page.getByRole("table", { name: table }).getByRole("row");
    await rows.nth(ITEMS).waitFor();
    const boxes = await Promise.all((await rows.all()).map((row) => row.boundingBox()));
    const list = await dashboard.page.getByRole("table", { name: table }).boundingBox();
    const bottom = Math.min(LAPTOP.height, (list?.y ?? 0) + (list?.height ?? 0));
    return boxes.filter((box) => box !== null && box.y >= 0 && box.y + box.height <= bottom + 0.5).length - 1;
  };

  for (const screen of ["PKPs", "Groups", "Actions", "Usage keys"] as const)
    it(`shows ${ITEMS} ${screen} at once`, async () => {
      await dashboard.go(screen);
      expect(await seen(screen)).to.be.at.least(ITEMS);
      await dashboard.looksRight(screen);
    });

  it("shows a group of thousands of pairs as two lists", async () => {
    const api = `${stack().baseUrl}/core/v1`;
    await dashboard.page.route("**/list_wallets_in_group?*", async (route) =>
      route.fulfill({ response: await route.fetch({ url: `${api}/list_wallets?page_size=1000` }) }),
    );
    await dashboard.page.route(/list_actions\?.*group_id/, async (route) =>
      route.fulfill({ response: await route.fetch({ url: `${api}/list_actions?page_size=1000` }) }),
    );
    await dashboard.go("Groups");
    await dashboard.page.getByRole("link", { name: "Group 7", exact: true }).click();
    const matrix = dashboard.page.getByRole("region", { name: "Matrix of actions and PKPs" });
    await matrix
      .getByRole("listitem")
      .nth(MANY - 1)
      .waitFor();
    expect(await matrix.getByRole("cell").allInnerTexts()).to.deep.equal(Array(ITEMS).fill("✓ every PKP below"));
    await dashboard.looksRight("a large group");
  });

  it(`shows ${ITEMS} runs and ${ITEMS} events at once`, async () => {
    await dashboard.go("Activity");
    expect(await seen("Runs")).to.be.at.least(ITEMS);
    await dashboard.looksRight("Runs");
    await dashboard.page.getByRole("tab", { name: "Events" }).click();
    expect(await seen("Events")).to.be.at.least(ITEMS);
    await dashboard.looksRight("Events");
    dashboard.expectCalm();
  });
});
