/** One request for one screen: how many a screen makes does not grow with the account. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { count } from "../../support/counts";
import { Dashboard, SCREENS } from "../../support/dashboard";
import { newApiAccount, NO_PERMISSIONS, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const PKPS = count(30, 1_300);
const GROUPS = count(24, 600);
const AT_ONCE = 25;
const MAX_PER_SCREEN = 12;
/** The account and the chain's configuration, before any screen. */
const FOR_SIGNING_IN = 2;
const MAX_PER_RENAME = 4;
const ANY_ACTION = `0x${"0".repeat(64)}`;
const CODE = "async function main() { return 1; }";

describe("requests of the dashboard", function () {
  this.timeout(count(120_000, 900_000));
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;
  let account: ApiAccount;
  const asked: string[] = [];
  const figures: Record<string, number> = {};

  const inBatches = async (many: number, make: (at: number) => Promise<unknown>): Promise<void> => {
    for (let from = 0; from < many; from += AT_ONCE)
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, many - from) }, (_, at) => make(from + at)));
  };

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    const { api } = account;
    const pkp = (await api.must("/create_wallet", { name: "Treasury" }))["wallet_address"];
    const cid = (await api.post("/get_lit_action_ipfs_id", CODE)).body;
    await api.must("/add_action", { action_ipfs_cid: cid, name: "One", description: "" });
    await inBatches(PKPS - 1, (at) => api.must("/create_wallet", { name: `PKP number ${at}` }));
    await inBatches(GROUPS, (at) =>
      api.must("/add_group", {
        group_name: `Group number ${at}`,
        group_description: "",
        pkp_ids_permitted: [pkp],
        cid_hashes_permitted: at === GROUPS - 1 ? [ANY_ACTION] : [`0x${"12".repeat(32)}`],
      }),
    );
    await api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "Bot", execute_in_groups: ["0"] });
    await api.must("/run_action", { code: CODE });
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
    dashboard.page.on("request", (request) => {
      if (/\/(core\/v1\/|ready|info|attestation)/.test(request.url()))
        asked.push(`${request.method()} ${request.url()}`);
    });
  });
  after(() => dashboard.close());

  const during = async (what: string, most: number, act: () => Promise<void>): Promise<void> => {
    asked.length = 0;
    await act();
    await dashboard.page.waitForLoadState("networkidle");
    figures[what] = asked.length;
    expect(asked.length, `${what}:\n${asked.join("\n")}`).to.be.at.most(most);
  };
  const opened = (what: string, act: () => Promise<void>): Promise<void> => during(what, MAX_PER_SCREEN, act);
  const link = (name: string | RegExp) => dashboard.page.getByRole("link", { name, exact: true }).first();

  it("are few on every screen, with members of all groups shown, and few after a rename", async () => {
    await during("Signing in, and Overview", FOR_SIGNING_IN + MAX_PER_SCREEN, async () => {
      await dashboard.signIn(account.key);
      await dashboard.says(/lists anything: any code/);
    });
    for (const screen of SCREENS) await opened(screen, () => dashboard.go(screen));
    await dashboard.go("PKPs");
    await opened("A PKP", async () => {
      await link("Treasury").click();
      await dashboard.page.getByRole("row", { name: new RegExp(`Group number ${GROUPS - 2}.*Bot`) }).waitFor();
    });
    await during("A rename", MAX_PER_RENAME, async () => {
      await dashboard.press("Rename");
      await dashboard.fill("Name", "Vault");
      await dashboard.confirm("Save");
      await dashboard.page.getByRole("heading", { level: 1, name: "Vault" }).waitFor();
    });
    await dashboard.go("Groups");
    await opened("A group", () => link("Group number 0").click());
    await dashboard.go("Actions");
    await opened("An action", () => link("One").click());
    await dashboard.go("Activity");
    await opened("A run", () => dashboard.page.getByRole("row", { name: /One/ }).getByRole("link").first().click());
    await dashboard.go("Activity");
    await opened("Why?", () => link("Why was it refused?").click());
    await dashboard.go("Usage keys");
    await dashboard.press("Create usage key");
    await dashboard.fill("Name", "Half filled in");
    asked.length = 0;
    await dashboard.page.getByRole("searchbox", { name: "Search May run actions in" }).press("Enter");
    await dashboard.confirm("Cancel");
    await dashboard.dialog().waitFor({ state: "hidden" });
    expect(asked.filter((one) => one.startsWith("POST"))).to.deep.equal([]);
    dashboard.expectCalm();
    console.log(`      requests at ${PKPS} PKPs and ${GROUPS} groups: ${JSON.stringify(figures)}`);
  });

  it("ask once for each page of keys, and a PKP's page names all who may use it", async () => {
    await dashboard.page.reload();
    await dashboard.signIn(account.key);
    await dashboard.go("PKPs");
    await link(/Treasury|Vault/).click();
    await dashboard.page.getByText("Bot", { exact: true }).first().waitFor();
    const { body } = await account.api.get("/list_api_keys");
    const [bot] = body as object[];
    const [first, second] = [1_000, 5];
    const id = (at: number): string => `0x${String(at).padStart(64, "0")}`;
    const keys = Array.from({ length: first + second }, (_, at) => ({ ...bot, id: id(at), name: `Bot ${at}` }));
    await dashboard.page.route("**/list_api_keys?*", (route) => {
      const from = Number(new URL(route.request().url()).searchParams.get("page_number")) * first;
      return route.fulfill({ json: keys.slice(from, from + first), headers: { "x-total-count": `${keys.length}` } });
    });
    asked.length = 0;
    await dashboard.press("Refresh");
    const row = dashboard.page.getByRole("row", { name: new RegExp(`Group number ${GROUPS - 2}\\b`) });
    // The account's own key is among those shown.
    await row.getByRole("button", { name: "986 more keys" }).click();
    await row.getByText(`Bot ${first + second - 1}`, { exact: true }).waitFor();
    expect(asked.filter((one) => /list_api_keys.*page_number=1\b/.test(one))).to.have.length(1);
  });
});
