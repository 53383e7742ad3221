/** Secrets that are shown once, and runs that cost: lost by no key press, reload or lost answer, and done once. */
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { BrowserWallet } from "../../support/browserWallet";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount, type ApiAccount } from "../../support/http";
import { eventually } from "../../support/chainBed";
import { useProvider, useStack } from "../../support/stack";

describe("once-only secrets in the dashboard", function () {
  this.timeout(90_000);
  const stack = useStack();
  const browser = useBrowser();
  const provider = useProvider();
  let dashboard: Dashboard;
  let account: ApiAccount;

  beforeEach(async () => {
    account = await newApiAccount(stack().baseUrl);
    dashboard = await Dashboard.open(browser(), stack().baseUrl);
  });
  afterEach(() => dashboard.close());

  const keys = async (): Promise<{ name: string }[]> => (await account.api.get("/list_api_keys")).body as never;
  const requestKey = async (name: string): Promise<void> => {
    await dashboard.go("Usage keys");
    await dashboard.press("Create usage key");
    await dashboard.fill("Name", name);
    await dashboard.confirm("Create usage key");
  };
  const works = async (key: string): Promise<void> => {
    expect((await account.api.with(key).get("/account")).status, "the key that was shown").to.equal(200);
  };
  /** Answers of this path arrive only once the returned function is called. */
  const hold = async (path: string): Promise<() => void> => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await dashboard.page.route(path, async (route) => {
      const response = await route.fetch();
      await held;
      await route.fulfill({ response });
    });
    return release;
  };

  it("shows a usage key although Escape, Cancel and Back are pressed while it is made", async () => {
    await dashboard.signIn(account.key);
    const release = await hold("**/add_usage_api_key");
    await requestKey("Held");
    await dashboard.page.keyboard.press("Escape");
    await dashboard.dialog().getByRole("button", { name: "Cancel" }).click({ force: true });
    await dashboard.page.goBack();
    release();
    await works(await dashboard.keepSecret());
    expect(await keys()).to.have.length(1);
  });

  it("shows a usage key whose answers were lost when its button is pressed again, and makes no second", async () => {
    await dashboard.signIn(account.key);
    await dashboard.loseAnswers("**/add_usage_api_key*");
    await requestKey("Lost");
    await dashboard.dialog().getByText("The service could not be reached").waitFor();
    await dashboard.confirm("Create usage key");
    await works(await dashboard.keepSecret());
    expect(await keys()).to.have.length(1);
  });

  it("shows a usage key again after a reload with the key on the screen, until it is stored", async () => {
    await dashboard.signIn(account.key);
    await requestKey("Reloaded");
    const shown = dashboard.page.getByRole("status", { name: "New usage key" });
    const secret = await shown.innerText();
    // As on a page without TLS.
    await dashboard.page.evaluate('Object.defineProperty(navigator, "clipboard", { value: undefined })');
    await dashboard.press("Copy usage key");
    await dashboard.says("The usage key was not copied: select it and copy it by hand.");
    await dashboard.page.reload();
    await dashboard.signIn(account.key);
    await dashboard.press("Show the key");
    expect(await dashboard.keepSecret()).to.equal(secret.trim());
    expect(await keys()).to.have.length(1);
    await dashboard.page.reload();
    await dashboard.signIn(account.key);
    expect(await dashboard.button("Show the key").count()).to.equal(0);
  });

  it("asks before the page is left while a key is on the screen, and not afterwards", async () => {
    await dashboard.signIn(account.key);
    await requestKey("Asked");
    await dashboard.page.getByRole("status", { name: "New usage key" }).waitFor();
    expect(await dashboard.askedBeforeLeaving()).to.deep.equal(["beforeunload"]);
    await dashboard.keepSecret();
    const asked: string[] = [];
    dashboard.page.on("dialog", (dialog) => (asked.push(dialog.type()), dialog.accept()));
    await dashboard.page.reload();
    expect(asked).to.deep.equal([]);
  });

  it("shows a usage key although the reads that follow never end", async () => {
    await dashboard.signIn(account.key);
    await dashboard.go("Usage keys");
    await dashboard.press("Create usage key");
    await dashboard.fill("Name", "First of all");
    for (const read of ["account", "list_api_keys*"]) await dashboard.page.route(`**/core/v1/${read}`, () => undefined);
    await dashboard.confirm("Create usage key");
    await works(await dashboard.keepSecret());
    await dashboard.page.getByRole("dialog").waitFor({ state: "detached" });
  });

  it("has a wallet store a usage key before it signs what attaches it, so that no reload loses it", async () => {
    const wallet = await BrowserWallet.funded(provider());
    await dashboard.close();
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, (page) => wallet.install(page));
    await dashboard.makeOwnAccount("Own", "Test Wallet");
    const sent = (): number => wallet.asked.filter((method) => method === "eth_sendTransaction").length;
    const before = sent();
    await requestKey("ü".repeat(65));
    await dashboard.confirm("Sign the request");
    await dashboard.dialog().getByText("The name is too long: at most 128 bytes").waitFor();
    await dashboard.confirm("Cancel");
    await dashboard.fill("Name", "Attached");
    await dashboard.confirm("Create usage key");
    const signed = wallet.asked.length;
    await dashboard.confirm("Sign the request");
    await dashboard.page.getByRole("status", { name: "New usage key" }).waitFor();
    await dashboard.page.keyboard.press("Escape");
    expect(await dashboard.askedBeforeLeaving()).to.deep.equal(["beforeunload"]);
    wallet.offline = true;
    const key = await dashboard.keepSecret();
    expect((await account.api.with(key).get("/account")).status, "not attached").to.equal(401);
    await dashboard.dialog().getByRole("button", { name: "Try again" }).waitFor();
    wallet.offline = false;
    await dashboard.confirm("Try again");
    await dashboard.reviewed("multicall");
    expect(wallet.asked.slice(signed), "one key is made").to.deep.equal(["eth_signTypedData_v4"]);
    expect(sent()).to.equal(before);
    await dashboard.confirm("Sign and send");
    await eventually("the transaction is sent", async () => sent() === before + 1, 10_000);
    await dashboard.page.reload();
    await eventually(
      "it is attached",
      async () => (await account.api.with(key).get("/account")).status === 200,
      10_000,
    );
  });

  it("shows an account's key although Escape and Cancel are pressed while the account is made", async () => {
    const release = await hold("**/new_account");
    await dashboard.press("Create account");
    await dashboard.fill("Name", "Patient");
    await dashboard.confirm("Create account");
    await dashboard.page.keyboard.press("Escape");
    await dashboard.dialog().getByRole("button", { name: "Cancel" }).click({ force: true });
    release();
    await works(await dashboard.keepSecret());
    await dashboard.signedIn();
  });

  it("shows an account's key although the reads that follow fail, and makes one account", async () => {
    const created: string[] = [];
    dashboard.page.on("request", (request) => {
      if (request.url().endsWith("/new_account")) created.push(request.headers()["idempotency-key"] ?? "");
    });
    await dashboard.page.route("**/get_node_chain_config*", (route) => route.abort());
    await dashboard.press("Create account");
    await dashboard.fill("Name", "Read later");
    await dashboard.confirm("Create account");
    const key = (await dashboard.page.getByRole("status", { name: "New API key" }).innerText()).trim();
    await dashboard.page.keyboard.press("Escape");
    await dashboard.page.getByRole("checkbox", { name: "I have stored this key" }).check();
    await dashboard.press("Continue");
    await dashboard.says("The service could not be reached");
    await dashboard.page.unroute("**/get_node_chain_config*");
    await dashboard.press("Continue");
    await dashboard.signedIn();
    await works(key);
    expect(created).to.have.length(1);
  });

  it("shows an account's key again after a lost answer, and after a reload with it on the screen", async () => {
    await dashboard.loseAnswers("**/new_account*");
    await dashboard.press("Create account");
    await dashboard.fill("Name", "Unlucky");
    await dashboard.confirm("Create account");
    await dashboard.dialog().getByText("The service could not be reached").waitFor();
    await dashboard.confirm("Create account");
    const shown = dashboard.page.getByRole("status", { name: "New API key" });
    const key = await shown.innerText();
    await dashboard.page.reload();
    await dashboard.press("Show the key");
    expect(await dashboard.keepSecret()).to.equal(key.trim());
    await dashboard.signedIn();
    await dashboard.page.reload();
    expect(await dashboard.button("Show the key").count()).to.equal(0);
  });

  const openRunner = async (code: string): Promise<void> => {
    await dashboard.signIn(account.key);
    const cid = (await account.api.post("/get_lit_action_ipfs_id", code)).body;
    await account.api.must("/add_group", { group_name: "g", group_description: "" });
    await account.api.must("/add_action_to_group", { group_id: 1, action_ipfs_cid: cid });
    await dashboard.go("Runner");
    await dashboard.page.getByRole("textbox", { name: "Code" }).fill(code);
  };
  const runs = async (): Promise<number> => ((await account.api.get("/list_runs")).body as unknown[]).length;

  it("runs an action once although Run is pressed again while it runs, its answer lost", async () => {
    await openRunner("async function main() { await new Promise((done) => setTimeout(done, 6_000)); }");
    let asked = 0;
    await dashboard.page.route("**/run_action", (route) => {
      if (asked++ > 0) return route.continue();
      void route.fetch().catch(() => undefined);
      return route.abort();
    });
    await dashboard.press("Run");
    await dashboard.says("This was asked for already and is still being done.");
    await eventually("the run has ended", async () => (await runs()) === 1, 20_000);
    await dashboard.button("Run").click();
    await dashboard.says("The action ran once, and its answer was lost on the way.");
    expect(await runs()).to.equal(1);
  });

  it("runs an action once although its answers are lost, says so, and runs it anew on the next press", async () => {
    await openRunner("async function main() { return Math.random(); }");
    await dashboard.loseAnswers("**/run_action");
    await dashboard.press("Run");
    await dashboard.says(/ran once|could not be reached/);
    await dashboard.button("Run").click();
    await dashboard.says("The action ran once, and its answer was lost on the way.");
    expect(await runs()).to.equal(1);
    await dashboard.page.unroute("**/run_action");
    await dashboard.press("Run");
    await dashboard.page.getByRole("region", { name: "Result" }).waitFor();
    expect(await runs()).to.equal(2);
  });

  it("lets a wallet without coin change the account that it converted, with the service paying", async () => {
    const wallet = await BrowserWallet.funded(provider(), { ether: "0" });
    await dashboard.close();
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {}, (page) => wallet.install(page));
    await dashboard.page.getByRole("checkbox", { name: "Remember in this tab" }).check();
    await dashboard.signIn(account.key);
    await dashboard.go("Account");
    await dashboard.press("Convert to ChainSecured");
    await dashboard.confirm("Test Wallet");
    await dashboard.page.getByRole("checkbox", { name: /cannot be undone/ }).check();
    await dashboard.confirm("Convert account");
    await dashboard.go("Groups");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "Free of gas");
    await dashboard.confirm("Create group");
    await dashboard.reviewed("addGroup", /The service pays the network fee: your wallet only signs/);
    await dashboard.confirm("Sign and send");
    await dashboard.row(/Free of gas/).waitFor();
    const stored = await dashboard.page.evaluate("JSON.stringify(Object.entries(sessionStorage))");
    expect(stored, "the key that has ended").to.not.include(account.key);
    dashboard.expectCalm();
  });
});
