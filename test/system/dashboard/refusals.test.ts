/** Every denied or failed run has a page: its reason and message, what is missing, and the button that grants it. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { members, newApiAccount, NO_PERMISSIONS, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const THROWS = "async function main() { throw new Error('no such pair: ETH/USD'); }";
const SIGNS = "async function main({ pkpId }) { return Actions.signMessage({ pkpId, message: 'hello' }); }";
const UNLISTED = "async function main() { return 'unlisted'; }";

describe("a refused or failed run in the dashboard", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;
  let account: ApiAccount;
  let bot: { key: string; hash: string };
  let pkp: string;

  const cidOf = async (code: string): Promise<string> =>
    String((await account.api.post("/get_lit_action_ipfs_id", code)).body);

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    const { api } = account;
    pkp = String((await api.must("/create_wallet", { name: "Vault" }))["wallet_address"]);
    await api.must("/add_group", { group_name: "Payouts", group_description: "" });
    for (const [name, code] of Object.entries({ Throws: THROWS, Signs: SIGNS })) {
      await api.must("/add_action", { action_ipfs_cid: await cidOf(code), name, description: "" });
      await api.must("/add_action_to_group", { group_id: "1", action_ipfs_cid: await cidOf(code) });
    }
    const made = await api.must("/add_usage_api_key", { ...NO_PERMISSIONS, name: "Bot", execute_in_groups: ["1"] });
    bot = { key: String(made["usage_api_key"]), hash: String(made["api_key_hash"]) };
  });
  beforeEach(async () => {
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
  });
  afterEach(() => dashboard.close());

  const run = async (code: string, params: object = {}) =>
    account.api.with(bot.key).post("/run_action", { code, js_params: params });
  /** The page of the newest run with this outcome, from the list of runs. */
  const openRun = async (outcome: string): Promise<void> => {
    await dashboard.go("Activity");
    await dashboard.page
      .getByRole("row", { name: new RegExp(`Bot.*${outcome}`) })
      .first()
      .getByRole("link")
      .first()
      .click();
    await dashboard.page.getByRole("heading", { level: 1, name: /^Run / }).waitFor();
  };
  const why = () => dashboard.page.getByRole("region", { name: "Why?" });

  it("shows the message that its code threw, in any tab, and that nothing is missing", async () => {
    expect(members(await run(THROWS))["has_error"]).to.equal(true);
    await dashboard.signIn(account.key);
    await openRun("threw");
    await dashboard.page.getByRole("region", { name: "Message" }).getByText("no such pair: ETH/USD").waitFor();
    await why().getByText("It is permitted: what failed is the code, or one of its limits.").waitFor();
    await dashboard.looksRight("the page of a failed run");
    dashboard.expectCalm();
  });

  it("names the permission that the code lacked, and grants it with one button", async () => {
    expect(members(await run(SIGNS, { pkpId: pkp }))["has_error"]).to.equal(true);
    await dashboard.signIn(account.key);
    await openRun("permission denied");
    await why().getByText("No group in which this key may run lists both this action and this PKP.").waitFor();
    await dashboard.looksRight("the page of a denied run");
    await why().getByRole("button", { name: "List “Vault” in “Payouts”" }).click();
    await why().getByText("It is permitted: the same run would start now.").waitFor();
    expect(members(await run(SIGNS, { pkpId: pkp }))["has_error"]).to.equal(false);
    dashboard.expectCalm();
  });

  it("has a page when it was refused at the door: for the owner with the button, for the key without", async () => {
    expect((await run(UNLISTED)).status).to.equal(403);
    await dashboard.signIn(bot.key);
    await dashboard.go("Runner");
    await dashboard.field("Code").fill(UNLISTED);
    await dashboard.press("Run");
    await why().getByText("Missing: a group in which the key may run that lists this action.").waitFor();
    expect(await why().getByRole("button").count()).to.equal(0);
    expect(await dashboard.button("Add this action to a group").count(), "it may not").to.equal(0);
    expect(await dashboard.page.getByRole("alert").allInnerTexts()).to.not.match(/List the action in a group/);
    await why().getByRole("link", { name: "Open as a page" }).click();
    await dashboard.page.getByRole("heading", { level: 1, name: "Why was it refused?" }).waitFor();
    const address = dashboard.page.url();
    expect(address)
      .to.include(bot.hash)
      .and.include(await cidOf(UNLISTED));
    await dashboard.press("Sign out");
    await dashboard.page.goto(address);
    await dashboard.signIn(account.key);
    await why().getByText("No group in which this key may run lists this action.").waitFor();
    await dashboard.looksRight("the page of a refused run");
    await why()
      .getByRole("button", { name: /^List .* in “Payouts”$/ })
      .click();
    await why().getByText("It is permitted: the same run would start now.").waitFor();
    expect((await run(UNLISTED)).status).to.equal(200);
    dashboard.expectCalm();
  });

  it("offers a key that may list actions in one group that group alone", async () => {
    await account.api.must("/add_group", { group_name: "Archive", group_description: "" });
    const made = await account.api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      name: "Lister",
      execute_in_groups: ["0"],
      manage_ipfs_ids_in_groups: ["1"],
    });
    await dashboard.signIn(String(made["usage_api_key"]));
    await dashboard.go("Runner");
    await dashboard.field("Code").fill(`${UNLISTED} // by the lister`);
    await dashboard.press("Run");
    await why().getByText("Missing: a group in which the key may run that lists this action.").waitFor();
    await why()
      .getByRole("button", { name: /in “Payouts”$/ })
      .waitFor();
    expect(await why().getByLabel("Where").count(), "there is one").to.equal(0);
    await dashboard.press("Add this action to a group");
    expect(await dashboard.dialog().getByLabel("Group").getByRole("option").allInnerTexts()).to.deep.equal(["Payouts"]);
    await dashboard.confirm("Add to group");
    await why().getByText("It is permitted: the same run would start now.").waitFor();
    dashboard.expectCalm();
  });

  it("leads a key that may only run to no change: neither steps nor links that its owner gets", async () => {
    const { api, key: ownersKey } = await newApiAccount(stack().baseUrl);
    const made = await api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      execute_in_groups: ["0"],
      expiration: String(Math.floor(Date.now() / 1000) + 86_400),
    });
    await api.must("/create_wallet", { name: "Vault" });
    await api.must("/freeze_account", {});
    const offers = async (): Promise<string[]> => {
      await dashboard.page
        .getByRole("region", { name: "Needs attention" })
        .getByText(/will expire/)
        .waitFor();
      await dashboard.page.waitForLoadState("networkidle");
      const steps = await dashboard.page.getByRole("button", { name: "Create group" }).count();
      const needs = dashboard.page.getByRole("region", { name: "Needs attention" });
      return [...(await needs.getByRole("link").allInnerTexts()), ...Array<string>(steps).fill("a step")];
    };
    await dashboard.signIn(ownersKey);
    expect((await offers()).sort()).to.deep.equal(["Create a group", "Renew it", "Unfreeze it"]);
    await dashboard.press("Sign out");
    await dashboard.signIn(String(made["usage_api_key"]));
    expect(await offers()).to.deep.equal([]);
    await dashboard.go("Groups");
    await dashboard.says("Its owner can unfreeze it.");
    dashboard.expectCalm();
  });

  it("can be asked about by choosing key, action and PKP", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Activity");
    await dashboard.page.getByRole("link", { name: "Why was it refused?" }).click();
    // The page before has fields of these names, too, and is shown until this one's code is loaded.
    const asked = dashboard.page.getByRole("region", { name: "Question" });
    await asked.getByLabel("Key", { exact: true }).selectOption({ label: "Bot" });
    await asked.getByLabel("Action", { exact: true }).fill(await cidOf(UNLISTED.replace("un", "")));
    await why().getByText("No group in which this key may run lists this action.").waitFor();
    await asked.getByLabel("Action", { exact: true }).fill("Qm");
    await dashboard.says("This is no CID");
    // A link that is opened in the same tab is asked, not what was chosen before.
    const link = `key=${bot.hash}&action=${await cidOf(SIGNS)}&pkp=${`0x${"a1".repeat(20)}`}`;
    await dashboard.page.goto(`${stack().baseUrl}/#/why?${link}`);
    await why().getByText("The account has no such PKP.").waitFor();
    expect(await asked.getByLabel("Action", { exact: true }).inputValue()).to.equal(await cidOf(SIGNS));
    dashboard.expectCalm();
  });
});
