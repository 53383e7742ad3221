/** The screens of an account in use: its days, its runs, its spending, and warnings. */
import { expect } from "chai";
import { setTimeout as sleep } from "node:timers/promises";
import { startStack, type Stack } from "../../../scripts/dev/stack";
import { connect } from "../../support/chain";
import { eventually } from "../../support/chainBed";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { Dashboard } from "../../support/dashboard";
import { populatedAccount } from "../../support/populatedAccount";
import { newApiAccount, NO_PERMISSIONS, type ApiAccount } from "../../support/http";
import { useProvider, useStack } from "../../support/stack";

const CODE = "async function main() { console.log('counted'); return 7; }";
const ANY = `0x${"0".repeat(64)}`;
/** More than one page of 50 history entries. */
const RUNS = 53;

describe("the dashboard's screens", function () {
  this.timeout(120_000);
  const stack = useStack();
  const provider = useProvider();
  const browser = useBrowser();
  let account: ApiAccount;
  let dashboard: Dashboard;

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    const { api } = account;
    const { group_id: group } = await api.must("/add_group", {
      group_name: "Counting",
      group_description: "",
      cid_hashes_permitted: [ANY],
    });
    const { usage_api_key: key } = await api.must("/add_usage_api_key", {
      ...NO_PERMISSIONS,
      name: "Counter",
      execute_in_groups: [group],
    });
    const run = async (): Promise<void> => {
      const answer = await fetch(`${stack().baseUrl}/core/v1/run_action`, {
        method: "POST",
        headers: { "x-api-key": String(key), "content-type": "application/json" },
        body: JSON.stringify({ code: CODE }),
      });
      expect(answer.status).to.equal(200);
    };
    for (let at = 0; at < RUNS; at += 1) await run();
    // The screens show what is on record, a second or two later.
    await eventually("the runs are on record", async () => {
      const { body } = await api.get("/list_api_keys?page=0&limit=10");
      return JSON.stringify(body).includes("last_used_at");
    });
  });
  afterEach(() => dashboard?.close());

  const open = async (key = account.key): Promise<void> => {
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
    await dashboard.signIn(key);
  };

  it("Overview: the runs and the spending of the last days, and the counts", async () => {
    await open();
    const days = dashboard.page.getByRole("region", { name: "The last 30 days" });
    await days.getByRole("img", { name: `Runs by day over the last 30 days: ${RUNS} runs in all` }).waitFor();
    await days.getByRole("img", { name: "Spending by day over the last 30 days: $0.55 in all" }).waitFor();
    const counts = await dashboard.page.getByRole("region", { name: "At a glance" }).innerText();
    expect(counts.replaceAll(/\s+/g, " ")).to.match(/PKPs 0 Groups 1 Actions 0 Usage keys 1/);
    const recent = dashboard.page.getByRole("region", { name: "Recent activity" });
    expect(await recent.getByRole("list", { name: "Newest runs" }).getByRole("listitem").count()).to.equal(5);
    await recent.getByRole("list", { name: "Newest changes" }).getByText("Group added").waitFor();
    for (const { name, path } of [
      { name: "Docs", path: "/docs" },
      { name: "API reference", path: "/core/v1/swagger-ui" },
      { name: "Package", path: "/packages/" },
    ]) {
      const link = dashboard.page
        .getByRole("list", { name: "Reference" })
        .getByRole("link", { name: new RegExp(`^${name}`) });
      const href = (await link.getAttribute("href")) ?? "";
      expect(href).to.include(path);
      expect((await fetch(stack().baseUrl + href)).status, href).to.equal(200);
    }
    await dashboard.page.getByRole("link", { name: "1 Usage key" }).click();
    await dashboard.row(new RegExp(`Counter.*${new Date().toLocaleString("en-US", { month: "short" })}`)).waitFor();
    dashboard.expectCalm();
  });

  it("Activity: runs of a span of days, found by searching all of them; events with the newest first", async () => {
    await open();
    await dashboard.go("Activity");
    const runs = dashboard.page.getByRole("region", { name: "Runs", exact: true });
    await runs.getByText(`${RUNS} runs`, { exact: true }).waitFor();
    await dashboard.page.getByRole("searchbox", { name: "Search Runs" }).fill("counter");
    await runs.getByText(`${RUNS} runs`, { exact: true }).waitFor();
    await dashboard.page.getByRole("searchbox", { name: "Search Runs" }).fill("nobody");
    await runs.getByText(`0 of ${RUNS} runs`).waitFor();
    await dashboard.page.getByRole("searchbox", { name: "Search Runs" }).fill("");
    await dashboard.page.getByLabel("From").fill("2001-01-01");
    await dashboard.page.getByLabel("Until").fill("2001-01-02");
    await dashboard.says("No such runs");
    await dashboard.page.getByLabel("Until").fill("2999-01-02");
    await runs.getByText(`${RUNS} runs`, { exact: true }).waitFor();
    await dashboard.page.getByRole("tab", { name: "Events" }).click();
    const events = dashboard.page.getByRole("table", { name: "Events" }).getByRole("row");
    await events
      .nth(1)
      .getByText(/^Usage key/)
      .waitFor();
    await events
      .last()
      .getByText(/Account created/)
      .waitFor();
    dashboard.expectCalm();
  });

  it("Activity: many pages of runs, as far back as the service answers them", async () => {
    await open();
    const { body } = await account.api.get("/list_runs?page_size=1");
    const [run] = body as object[];
    const page = Array.from({ length: 1_000 }, (_, at) => ({ ...run, request_id: `run-${at}` }));
    await dashboard.page.route("**/list_runs?*", (route) => {
      const query = new URL(route.request().url()).searchParams;
      const isEmpty = query.has("from") && query.get("page_number") === "1";
      return route.fulfill({ json: isEmpty ? [] : page, headers: { "x-total-count": "50000" } });
    });
    await dashboard.go("Activity");
    const runs = dashboard.page.getByRole("region", { name: "Runs", exact: true });
    await runs.getByText("1,000 of 50,000 runs").waitFor();
    for (let older = 1; older <= 10; older += 1) {
      const answer = dashboard.page.waitForResponse(new RegExp(`list_runs.*page_number=${older}&`));
      await dashboard.press("Older");
      await answer;
    }
    await runs.getByText("Older runs: choose a day in Until.").waitFor();
    expect(await dashboard.button("Older").count()).to.equal(0);
    await dashboard.button("Newer").waitFor();
    await dashboard.page.getByLabel("From").fill("2001-01-01");
    await runs.getByText("1,000 runs on this page", { exact: true }).waitFor();
    await dashboard.press("Older");
    await dashboard.says("No older runs.");
    expect(await dashboard.button("Older").count()).to.equal(0);
    await dashboard.press("Newer");
    await runs.getByText("1,000 runs on this page", { exact: true }).waitFor();
    dashboard.expectCalm();
  });

  it("A run: an address of none says so", async () => {
    await open();
    for (const place of ["1700000000-none", "none", "5f0e-4a"]) {
      await dashboard.page.goto(`${stack().baseUrl}/#/activity/${place}`);
      await dashboard.says("No such run");
    }
    dashboard.expectCalm();
  });

  it("Runner: the response, the unchanged logs, time, price and CID", async () => {
    await open();
    await dashboard.go("Runner");
    await dashboard.field("Code").fill(CODE);
    await dashboard.field("Parameters").fill("{}");
    await dashboard.press("Run");
    const result = dashboard.page.getByRole("region", { name: "Result" });
    await result.getByText("succeeded").waitFor();
    const { body } = await account.api.post("/get_lit_action_ipfs_id", CODE);
    const cid = String(body);
    expect(await result.getByRole("region", { name: "Logs" }).innerText()).to.equal("counted\n");
    expect((await result.innerText()).replaceAll(/\s+/g, " "))
      .to.match(/Time [\d.]+ m?s Price \$0\.01 CID of the code/)
      .and.include(`${cid.slice(0, 6)}…${cid.slice(-6)}`);
    dashboard.expectCalm();
  });

  it("Credit: prices, spending by key, and a history of more than one page", async () => {
    await open();
    await dashboard.go("Credit");
    const prices = dashboard.page.getByRole("region", { name: "Balance and prices" });
    await prices.getByText("for each second begun").waitFor();
    expect((await prices.innerText()).replaceAll(/\s+/g, " ")).to.match(
      /A run \$0\.01 for each second begun A change \$0\.01/,
    );
    const spending = dashboard.page.getByRole("region", { name: "Spending by key" });
    await spending.getByRole("row", { name: /Counter.*\$0\.53.*none/ }).waitFor();
    expect(await dashboard.row(/Signup credit/).count(), "on the first page").to.equal(0);
    await dashboard.press("Older");
    await dashboard.row(/Signup credit.*\$20\.00/).waitFor();
    expect(await dashboard.button("Older").count()).to.equal(0);
    await dashboard.press("Newer");
    await dashboard.button("Older").waitFor();
    dashboard.expectCalm();
  });

  it("Actions: a removed one is gone", async () => {
    await open((await populatedAccount(stack().baseUrl, "Treasury")).key);
    await dashboard.go("Actions");
    await dashboard.choose(dashboard.row(/Hello/), "Remove");
    await dashboard
      .dialog()
      .getByRole("button", { name: /^Remove/ })
      .click();
    await dashboard.says("No actions yet");
    dashboard.expectCalm();
  });

  it("sign-in: every announced wallet, to choose from", async () => {
    const wallets = [
      await BrowserWallet.funded(provider(), { name: "Fox" }),
      await BrowserWallet.funded(provider(), { name: "Rabbit" }),
    ];
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, async (page) => {
      for (const wallet of wallets) await wallet.install(page);
    });
    await dashboard.press("Connect wallet");
    for (const { name } of wallets) await dashboard.dialog().getByRole("button", { name, exact: true }).waitFor();
    await dashboard.confirm("Rabbit");
    await dashboard.says("This wallet owns no account here yet.");
    expect(wallets.map(({ asked }) => asked.length > 0)).to.deep.equal([false, true]);
    dashboard.expectCalm();
  });

  describe("of a service that gives no credit at sign-up", () => {
    let other: Stack;
    before(async () => {
      other = await startStack({ env: { SIGNUP_CREDIT_CENTS: "0" } });
    });
    after(() => other?.stop());
    const openThere = async (key: string): Promise<void> => {
      dashboard = await Dashboard.open(browser(), other.baseUrl);
      await dashboard.signIn(key);
    };

    it("say first that there is none, and link to where it is added", async () => {
      await openThere((await newApiAccount(other.baseUrl)).key);
      const needs = dashboard.page.getByRole("region", { name: "Needs attention" });
      await needs.getByText("There is no credit left: runs and changes are refused.").waitFor();
      await needs.getByRole("link", { name: "Add credit" }).click();
      await dashboard.button("Add funds").waitFor();
      dashboard.expectCalm();
    });

    it("say in words that changes may wait, while the service has no gas, and what to do", async () => {
      const { key } = await newApiAccount(other.baseUrl);
      const chain = connect(other.rpcUrl);
      const read = async (path: string) => (await fetch(`${other.baseUrl}/core/v1/${path}`)).json();
      const admin = (await read("get_admin_api_payer")) as string;
      const payers = (await read("get_api_payers")) as string[];
      // The admin's first: it would fill up the others again.
      for (const payer of [admin, ...payers]) await chain.send("anvil_setBalance", [payer, "0x0"]);
      while ((await fetch(`${other.baseUrl}/ready`)).status === 200) await sleep(250);
      chain.destroy();
      await openThere(key);
      await dashboard.says(/The service is not ready: .* gas/);
      await dashboard.says(/Changes and runs may be refused or wait; nothing is done twice when you try again/);
      await dashboard.looksRight("a service that is not ready");
    });
  });
});
