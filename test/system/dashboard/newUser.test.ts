/** A new user goes from the open page to a signature by a PKP with only what the screen shows. */
import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { useStack } from "../../support/stack";

describe("a new user", function () {
  this.timeout(60_000);
  const stack = useStack();
  const browser = useBrowser();

  it("creates an account, a PKP, an action, a group and a key, and sees the PKP sign", async () => {
    const dashboard = await Dashboard.open(browser(), stack().baseUrl, {
      acceptDownloads: true,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await dashboard.press("Create account");
    await dashboard.fill("Name", "Ada");
    await dashboard.confirm("Create account");
    expect(await dashboard.button("Continue").getAttribute("aria-disabled"), "before it is said to be kept").to.equal(
      "true",
    );
    await dashboard.page.keyboard.press("Escape");
    const [download] = await Promise.all([dashboard.page.waitForEvent("download"), dashboard.press("Download")]);
    await dashboard.press("Copy API key");
    await dashboard.button("Copied").waitFor();
    const copied = await dashboard.page.evaluate("navigator.clipboard.readText()");
    const key = await dashboard.keepSecret();
    expect(key).to.have.length(44);
    expect([copied, (await readFile(await download.path(), "utf8")).trim()]).to.deep.equal([key, key]);

    await dashboard.createPkp("My first PKP");
    await dashboard.press("Add action");
    await dashboard.confirm("Add action");
    await dashboard.press("Create group");
    await dashboard.fill("Name", "My first group");
    await dashboard.confirm("Create group");
    await dashboard.press("Create usage key");
    await dashboard.fill("Name", "My first key");
    await dashboard.confirm("Create usage key");
    const usageKey = await dashboard.keepSecret();
    await dashboard.press("Run");
    await dashboard.says("Your PKP signed.");
    dashboard.expectCalm();

    const stored = await dashboard.page.evaluate(
      "JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, location.href])",
    );
    expect(stored).to.not.include(key).and.not.include(usageKey);
    await dashboard.page.reload();
    await dashboard.signIn(key);
    await dashboard.go("PKPs");
    await dashboard.row(/My first PKP/).waitFor();
    await dashboard.press("Sign out");
    await dashboard.button("Sign in").waitFor();
    await dashboard.close();
  });
});
