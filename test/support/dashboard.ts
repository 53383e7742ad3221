/**
 * Drives the dashboard like a user: a page in a real browser, with controls found by their visible names; collects the
 * page's problems.
 */
import { AxeBuilder } from "@axe-core/playwright";
import { expect } from "chai";
import type { Browser, BrowserContext, Dialog, Locator, Page } from "playwright-core";

export const SCREENS = [
  "Overview",
  "PKPs",
  "Groups",
  "Actions",
  "Policies",
  "Usage keys",
  "Runner",
  "Triggers",
  "Budgets",
  "Activity",
  "Credit",
  "Webhooks",
  "Trust",
  "Account",
] as const;
export type Screen = (typeof SCREENS)[number];

const TIMEOUT_MS = 15_000;
/** The SDK tries four times; then its caller presses again. */
const ATTEMPTS = 4;
/** Except endless ones, like a spinner's. */
const ANIMATIONS_AT_REST = `Promise.all(document.getAnimations()
  .filter(({ effect }) => effect.getComputedTiming().endTime < Infinity)
  .map((animation) => animation.finished.catch(() => undefined)))`;

export class Dashboard {
  /** Errors of the page or browser, and violations of the content security policy. */
  readonly complaints: string[] = [];
  /** Requests to any other host than the service. */
  readonly elsewhere: string[] = [];

  private constructor(
    readonly page: Page,
    readonly context: BrowserContext,
    baseUrl: string,
  ) {
    page.setDefaultTimeout(TIMEOUT_MS);
    page.on("pageerror", (error) => this.complaints.push(error.message));
    page.on("console", (message) => {
      if (/content security policy/i.test(message.text())) this.complaints.push(message.text());
    });
    page.on("request", (request) => {
      if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(`${baseUrl}/`))
        this.elsewhere.push(request.url());
    });
  }

  static async open(
    browser: Browser,
    baseUrl: string,
    options: Parameters<Browser["newContext"]>[0] = {},
    prepare?: (page: Page) => Promise<unknown>,
  ) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
    const dashboard = new Dashboard(await context.newPage(), context, baseUrl);
    await prepare?.(dashboard.page);
    await dashboard.page.goto(`${baseUrl}/`);
    return dashboard;
  }

  close = (): Promise<void> => this.context.close();
  button = (name: string): Locator => this.page.getByRole("button", { name, exact: true });
  field = (name: string): Locator => this.page.getByRole("textbox", { name, exact: true });
  dialog = (): Locator => this.page.getByRole("dialog").last();
  row = (name: string | RegExp): Locator => this.page.getByRole("row", { name });

  async press(name: string): Promise<void> {
    await this.button(name).click();
  }

  /** Presses the button in the topmost dialog. */
  async confirm(name: string): Promise<void> {
    await this.dialog().getByRole("button", { name, exact: true }).click();
  }

  /** Chooses from the menu of a row. */
  async choose(row: Locator, item: string): Promise<void> {
    await row.getByRole("button", { name: /^More for/ }).click();
    await this.page.getByRole("menuitem", { name: item, exact: true }).click();
  }

  async fill(name: string, text: string): Promise<void> {
    await this.field(name).fill(text);
  }

  async go(screen: Screen): Promise<void> {
    await this.page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: screen, exact: true }).click();
    if (screen !== "Overview") await this.page.getByRole("heading", { level: 1, name: screen, exact: true }).waitFor();
  }

  async signIn(key: string): Promise<void> {
    await this.page.getByLabel("API key", { exact: true }).fill(key);
    await this.press("Sign in");
    await this.signedIn();
  }

  async signedIn(): Promise<void> {
    await this.page.getByRole("navigation", { name: "Main" }).waitFor();
  }

  /** Waits until the page shows this text; a failure reports what it showed instead. */
  async says(text: string | RegExp): Promise<void> {
    await this.page
      .getByText(text)
      .first()
      .waitFor()
      .catch(async () =>
        expect.fail(`the page never said ${text}; it says: ${await this.page.locator("body").innerText()}`),
      );
  }

  /** Reads a secret that is shown once and confirms that it is stored. */
  async keepSecret(): Promise<string> {
    const secret = await this.page.getByRole("status", { name: /^New / }).innerText();
    await this.page.getByRole("checkbox", { name: "I have stored this key" }).check();
    await this.press("Continue");
    return secret.trim();
  }

  /** The service acts, and the answers of the first call are lost. */
  async loseAnswers(path: string): Promise<void> {
    let lost = 0;
    await this.page.route(path, async (route) => {
      if (lost++ >= ATTEMPTS) return route.continue();
      await route.fetch();
      return route.abort();
    });
  }

  /** What asks whether to leave the page. */
  async askedBeforeLeaving(): Promise<string[]> {
    const asked: string[] = [];
    const note = (dialog: Dialog): void => {
      asked.push(dialog.type());
      void dialog.dismiss();
    };
    this.page.on("dialog", note);
    await this.page.close({ runBeforeUnload: true });
    await this.page.waitForTimeout(500);
    this.page.off("dialog", note);
    return asked;
  }

  /** Makes an account owned by a wallet of this name, from the sign-in page. */
  async makeOwnAccount(name: string, wallet: string): Promise<void> {
    await this.press("Create account");
    await this.page.getByRole("radio", { name: "With my wallet" }).check({ force: true });
    await this.fill("Name", name);
    await this.confirm("Create account");
    await this.confirm(wallet);
    await this.says("newChainSecuredAccount");
    await this.confirm("Sign and send");
    await this.signedIn();
  }

  /** Checks that the review shows the called function and who pays. */
  async reviewed(functionName: string, payer: RegExp = /Your wallet pays the network fee: [\d,]+ gas/): Promise<void> {
    await this.dialog().getByText(functionName, { exact: true }).waitFor();
    await this.dialog().getByText(payer).waitFor();
  }

  /** Reviews a write and lets the wallet send it. */
  async reviewAndSend(functionName: string): Promise<void> {
    await this.reviewed(functionName);
    await this.confirm("Sign and send");
  }

  async createPkp(name: string): Promise<void> {
    await this.press("Create PKP");
    await this.fill("Name", name);
    await this.confirm("Create PKP");
  }

  /** Waits until nothing is being loaded. */
  async loaded(): Promise<void> {
    await this.page.locator(".spinner").first().waitFor({ state: "detached" });
  }

  /** Violations of all accessibility rules, or of these, on what is shown now, or on this part of it. */
  async violations(part = "html", rules?: readonly string[]): Promise<string[]> {
    await this.page.evaluate(ANIMATIONS_AT_REST);
    const axe = new AxeBuilder({ page: this.page }).setLegacyMode().include(part);
    // All rules, without a description of each element that keeps them, which takes half the time.
    axe.options({ resultTypes: ["violations"] });
    if (rules !== undefined) axe.withRules([...rules]);
    const { violations } = await axe.analyze();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  }

  /** Opens the form of a usage key that may run in this group, and fills it in. */
  async fillUsageKey(name: string, group: string): Promise<void> {
    await this.go("Usage keys");
    await this.press("Create usage key");
    await this.fill("Name", name);
    await this.page.getByRole("group", { name: "May run actions in" }).getByRole("checkbox", { name: group }).check();
  }

  /** The answer to "Who can use this PKP?" has a row like this. */
  async saysWhoCanUse(pkp: string, row: RegExp): Promise<void> {
    await this.go("PKPs");
    await this.page.getByRole("link", { name: pkp }).click();
    await this.page.getByRole("region", { name: "Uses" }).getByRole("row", { name: row }).waitFor();
  }

  /** No rule broken, and nothing that makes the page scroll sideways. */
  async looksRight(what: string, part?: string): Promise<void> {
    expect(await this.violations(part), what).to.deep.equal([]);
    const overflow = await this.page.evaluate(
      "document.documentElement.scrollWidth - document.documentElement.clientWidth",
    );
    expect(overflow, `${what} scrolls sideways`).to.equal(0);
  }

  expectCalm(): void {
    expect({ complaints: this.complaints, elsewhere: this.elsewhere }).to.deep.equal({ complaints: [], elsewhere: [] });
  }
}
