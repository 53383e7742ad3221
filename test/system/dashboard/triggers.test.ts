/** The dashboard's Triggers screen: made in plain sentences, fired by hand, paused, looked into and deleted. */
import { createHmac } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import type { Page, Route } from "playwright-core";
import { actionHashOf } from "../../../protocol/ids";
import { cidOfCode } from "../../../protocol/cid";
import { useBrowser } from "../../support/browser";
import { Dashboard, type Screen } from "../../support/dashboard";
import { newApiAccount, NO_PERMISSIONS, send, type ApiAccount } from "../../support/http";
import { createChainSecuredClient } from "../../../client";
import { BrowserWallet } from "../../support/browserWallet";
import { fundedWallet } from "../../support/chain";
import { eventually } from "../../support/chainBed";
import { useProvider, useStack } from "../../support/stack";

const CODE = `async function main({ fails }) { if (fails) throw new Error("no"); return 1; }`;
/** Where the screens are kept to be looked at, if that is wanted. */
const PICTURES = process.env.KEYWRIGHT_PICTURES;

describe("the dashboard's triggers", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  const provider = useProvider();
  let dashboard: Dashboard;
  let account: ApiAccount;
  let cid: string;

  beforeEach(async () => {
    account = await newApiAccount(stack().baseUrl);
    cid = await cidOfCode(CODE);
    const cid_hashes_permitted = [actionHashOf(cid as never)];
    await account.api.must("/add_group", { group_name: "g", group_description: "", cid_hashes_permitted });
    await account.api.must("/add_action", { action_ipfs_cid: cid, name: "Report", description: "" });
    // The service keeps code that has run.
    await account.api.must("/run_action", { code: CODE });
  });
  afterEach(() => dashboard?.close());

  const open = async (
    key = account.key,
    options: object = {},
    prepare?: (page: Page) => Promise<unknown>,
  ): Promise<void> => {
    dashboard = await Dashboard.open(browser(), stack().baseUrl, options, prepare);
    await dashboard.page.getByLabel("API key", { exact: true }).fill(key);
    await dashboard.press("Sign in");
    await dashboard.page.getByRole("region", { name: "At a glance" }).waitFor();
    await go("Triggers");
  };
  /** As long as the service has not seen the transaction that attached a trigger's key. */
  const seenLate = async (route: Route): Promise<void> => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replace('"active"', '"unattached"') });
  };
  const go = async (screen: Screen): Promise<void> => {
    const menu = dashboard.button("Menu");
    if (await menu.isVisible()) await menu.click();
    await dashboard.go(screen);
  };
  const select = (label: string, option: string): Promise<unknown> =>
    dashboard.dialog().getByLabel(label, { exact: true }).selectOption({ label: option });
  const picture = async (name: string): Promise<void> => {
    if (PICTURES === undefined) return;
    mkdirSync(PICTURES, { recursive: true });
    await dashboard.page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
  };

  it("makes a schedule from a plain sentence, shows when it fires next, fires it, pauses and deletes it", async () => {
    await open();
    await dashboard.says("No triggers yet");
    await dashboard.press("Create trigger");
    await dashboard.fill("Name", "Morning report");
    await select("Action", "Report");
    await select("When", "every weekday at 9:00");
    await select("When", "at other times (cron)");
    await dashboard.fill("Cron", "0 12 1 * +MON");
    await dashboard.says(/0 12 1 \* \+MON in .*Next: /);
    await select("When", "every weekday at 9:00");
    await dashboard.fill("Time zone", "Mars/Olympus");
    await dashboard.says(/must be an IANA time zone/);
    await dashboard.fill("Time zone", "Europe/Berlin");
    await dashboard.says(/Every weekday at 09:00 in Berlin. Next: /);
    await picture("create");
    await dashboard.fill("Spending cap in dollars", "ten");
    await dashboard.confirm("Create trigger");
    await dashboard.says(/The spending cap is no sum/);
    await dashboard.fill("Spending cap in dollars", "$1,000");
    await dashboard.confirm("Create trigger");
    const row = dashboard.row(/Morning report/);
    await row.getByText("Every weekday at 09:00 in Berlin").waitFor();
    await row.getByText("never").waitFor();
    const [made] = (await account.api.get("/triggers")).body as Record<string, unknown>[];
    expect(made).to.deep.include({
      schedule: { cron: "0 9 * * 1-5", time_zone: "Europe/Berlin", missed: "skip" },
      state: "active",
    });
    const keys = (await account.api.get("/list_api_keys")).body as Record<string, unknown>[];
    const own = keys.find(({ api_key_hash: id }) => id === made?.["api_key_hash"]);
    expect(own?.["balance"]).to.equal("100000");
    await dashboard.press("Run now");
    await row.getByText("succeeded").waitFor();
    await dashboard.press("Pause");
    await row.getByText("paused").waitFor();
    await dashboard.press("Resume");
    await row.getByText("active").waitFor();
    await dashboard.choose(row, "Firings");
    await dashboard
      .dialog()
      .getByRole("row", { name: /hand.*succeeded.*\$0\.01/ })
      .waitFor();
    await picture("firings");
    await dashboard.press("Close");
    await dashboard.choose(row, "Delete");
    await dashboard.confirm("Delete trigger");
    await dashboard.says("No triggers yet");
    dashboard.expectCalm();
  });

  it("makes an event trigger and a hook, whose secret it shows once", async () => {
    await open();
    await dashboard.press("Create trigger");
    await dashboard.fill("Name", "Invoices");
    await select("Action", "Report");
    await dashboard.page.getByRole("radio", { name: "on an event of a contract" }).check({ force: true });
    await dashboard.fill("Contract", `0x${"a1".repeat(20)}`);
    await dashboard.fill("Confirmations", "3");
    await select("After an outage", "drop what waited when the TEE restarted");
    await dashboard.confirm("Create trigger");
    await dashboard
      .row(/Invoices/)
      .getByText(/logs an event, after 3 confirmations/)
      .waitFor();
    const [event] = (await account.api.get("/triggers")).body as Record<string, unknown>[];
    expect(event?.["event"]).to.deep.include({ confirmations: 3, missed: "skip" });
    await dashboard.press("Create trigger");
    await dashboard.fill("Name", "Releases");
    await select("Action", "Report");
    await dashboard.page.getByRole("radio", { name: "when a URL is called" }).check({ force: true });
    await dashboard.confirm("Create trigger");
    await dashboard.says("The hook's secret");
    await dashboard.page.keyboard.press("Escape");
    await dashboard.page.goto(`${stack().baseUrl}/#/groups`);
    await dashboard.says("The hook's secret");
    await dashboard.page.goto(`${stack().baseUrl}/#/triggers`);
    expect(await dashboard.keepSecret()).to.match(/^[0-9a-f]{64}$/);
    await dashboard
      .row(/Releases/)
      .getByText("By a signed request")
      .waitFor();
  });

  const requestHook = async (name: string): Promise<void> => {
    await dashboard.press("Create trigger");
    await dashboard.fill("Name", name);
    await select("Action", "Report");
    await dashboard.page.getByRole("radio", { name: "when a URL is called" }).check({ force: true });
    await dashboard.confirm("Create trigger");
  };
  const triggers = async (): Promise<Record<string, unknown>[]> => (await account.api.get("/triggers")).body as never;
  /** The only trigger fires for whoever has its secret. */
  const fires = async (secret: string): Promise<void> => {
    const [{ id } = {}] = await triggers();
    const body = JSON.stringify({ from: "test" });
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const fired = await send(`${stack().baseUrl}/core/v1/hooks/${String(id)}`, {
      method: "POST",
      body: { from: "test" },
      headers: { "x-signature": signature },
    });
    expect(fired.status, "a request signed by the secret that was shown").to.equal(200);
  };

  it("shows a hook's secret before anything is read, and again after a reload, until it is stored", async () => {
    await open();
    await dashboard.says("No triggers yet");
    for (const read of ["account", "list_api_keys*", "triggers?*"])
      await dashboard.page.route(`**/core/v1/${read}`, (route) =>
        route.request().method() === "GET" ? undefined : route.continue(),
      );
    await requestHook("Reloaded");
    const shown = await dashboard.page.getByRole("status", { name: "New hook secret" }).innerText();
    expect(await dashboard.askedBeforeLeaving()).to.deep.equal(["beforeunload"]);
    await dashboard.page.unrouteAll({ behavior: "ignoreErrors" });
    await dashboard.page.reload();
    await dashboard.signIn(account.key);
    await dashboard.says("You requested the trigger “Reloaded”, and have not stored its secret.");
    await dashboard.press("Show the secret");
    const secret = await dashboard.keepSecret();
    expect(secret).to.equal(shown.trim());
    expect(await triggers()).to.have.length(1);
    await fires(secret);
    await dashboard.page.reload();
    await dashboard.signIn(account.key);
    expect(await dashboard.button("Show the secret").count()).to.equal(0);
    dashboard.expectCalm();
  });

  it("shows a hook's secret whose answers were lost when its button is pressed again, making no second", async () => {
    await open();
    await dashboard.loseAnswers("**/triggers*");
    await requestHook("Lost");
    await dashboard.dialog().getByText("The service could not be reached").waitFor();
    await dashboard.confirm("Create trigger");
    await fires(await dashboard.keepSecret());
    expect(await triggers()).to.have.length(1);
  });

  it("makes another trigger of the same name after one whose answers were lost", async () => {
    await open();
    await dashboard.says("No triggers yet");
    await dashboard.loseAnswers("**/triggers");
    await dashboard.press("Create trigger");
    await dashboard.fill("Name", "Twin");
    await select("Action", "Report");
    await dashboard.confirm("Create trigger");
    await dashboard.dialog().getByText("The service could not be reached").waitFor();
    await dashboard.fill("Params (JSON)", '{ "other": true }');
    await dashboard.confirm("Create trigger");
    await dashboard.row(/Twin/).nth(1).waitFor();
    const made = await triggers();
    expect(new Set(made.map(({ params_sha256 }) => params_sha256)).size).to.equal(2);
  });

  it("fires once although the answers are lost and Run now is pressed again", async () => {
    const { id } = await account.api.must("/triggers", {
      name: "Nightly",
      code: CODE,
      schedule: { cron: "30 2 * * *" },
    });
    await open();
    await dashboard.loseAnswers("**/run");
    await dashboard.press("Run now");
    await dashboard.says("The service could not be reached");
    await dashboard.press("Run now");
    await dashboard
      .row(/Nightly/)
      .getByText("succeeded")
      .waitFor();
    expect((await account.api.get(`/triggers/${String(id)}/firings`)).body).to.have.length(1);
  });

  it("says on Overview and Triggers why the service paused one", async () => {
    const made = await account.api.must("/triggers", {
      ...{ name: "Broken", code: CODE, params: { fails: true }, hook: { respond: true } },
    });
    for (let count = 0; count < 5; count += 1)
      await send(`${stack().baseUrl}/core/v1/hooks/${String(made["id"])}`, { method: "POST", body: {} });
    for (const [name, schedule] of [
      ["Nightly", { cron: "30 2 * * *", time_zone: "America/New_York" }],
      ["Keeper of the northern branch's treasury, for working days", { cron: "*/5 * * * *" }],
    ] as const)
      await account.api.must("/triggers", { name, code: CODE, schedule });
    await account.api.must("/triggers", { name: "Invoices", code: CODE, event: { address: `0x${"a1".repeat(20)}` } });
    for (const [name, options] of [
      ["light", { colorScheme: "light" }],
      ["dark", { colorScheme: "dark" }],
      ["phone", { colorScheme: "light", viewport: { width: 390, height: 844 } }],
    ] as const) {
      await dashboard?.close();
      await open(account.key, options);
      await dashboard.says(/“?Broken”? is paused: 5 firings in a row failed, the last one with threw\./);
      await dashboard.looksRight(`Triggers, ${name}`);
      await picture(`triggers-${name}`);
      await dashboard.press("Create trigger");
      await dashboard.looksRight(`Create trigger, ${name}`);
      await picture(`create-${name}`);
      await dashboard.confirm("Cancel");
      await go("Overview");
      await dashboard.says(/Broken”? was paused by the service/);
      await picture(`overview-${name}`);
    }
    dashboard.expectCalm();
  });

  it("deletes those of a wallet's account with their keys, also if there is none or it is revoked", async () => {
    const signer = await fundedWallet(provider(), "10");
    const owner = await createChainSecuredClient({ baseUrl: stack().baseUrl, signer });
    await owner.createAccount({ account_name: "w", account_description: "" });
    await owner.createTrigger({ name: "Kept", code: CODE, hook: { verification: "none" } });
    await owner.prepareTrigger({ name: "Left", code: CODE, hook: { verification: "none" } });
    const { usage_api_key } = await owner.createUsageKey({ ...NO_PERMISSIONS, execute_in_groups: ["0"] });
    await open(usage_api_key, {}, (page) => page.route("**/core/v1/triggers?*", seenLate, { times: 1 }));
    await dashboard.row(/Kept/).getByRole("button", { name: "Run now" }).waitFor();
    await dashboard.close();
    const wallet = new BrowserWallet("Test Wallet", signer, 31_337n);
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, (page) => wallet.install(page));
    await dashboard.press("Connect wallet");
    await dashboard.signedIn();
    await dashboard.page.route("**/core/v1/triggers?*", seenLate);
    await go("Triggers");
    await dashboard.choose(dashboard.row(/Left/), "Delete");
    await dashboard.confirm("Delete trigger");
    await dashboard.row(/Left/).waitFor({ state: "detached" });
    await dashboard.choose(dashboard.row(/Kept/), "Delete");
    await dashboard.confirm("Delete trigger");
    await dashboard.reviewed("removeUsageApiKey");
    await dashboard.confirm("Sign and send");
    await dashboard.says("No triggers yet");
    expect(wallet.asked.filter((method) => method === "eth_sendTransaction")).to.have.length(1);
    await dashboard.page.unroute("**/core/v1/triggers?*");
    const gone = await owner.createTrigger({ name: "Gone", code: CODE, hook: { verification: "none" } });
    await eventually("its key is seen", async () => (await owner.getTrigger({ id: gone.id })).state === "active");
    await owner.removeUsageApiKey({ usage_api_key: gone.api_key_hash });
    await dashboard.press("Refresh");
    await dashboard.choose(dashboard.row(/Gone/), "Delete");
    await dashboard.confirm("Delete trigger");
    await dashboard.says("No triggers yet");
    expect((await owner.listTriggers()).total).to.equal(0);
  });

  it("lets a usage key look and run, but neither make nor pause one", async () => {
    await account.api.must("/triggers", { name: "Nightly", code: CODE, schedule: { cron: "30 2 * * *" } });
    const key = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS, execute_in_groups: ["0"] });
    await open(String(key["usage_api_key"]));
    const row = dashboard.row(/Nightly/);
    await dashboard.press("Run now");
    await row.getByText("succeeded").waitFor();
    expect(await dashboard.button("Create trigger").count()).to.equal(0);
    expect(await dashboard.button("Pause").count()).to.equal(0);
  });
});
