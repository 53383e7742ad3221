/** A new user goes from the open page to a signature by a PKP and to their own programs, with what the screen shows. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { bash, surroundings } from "../../support/bash";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { needs } from "../../support/needs";
import { useStack } from "../../support/stack";

describe("a new user", function () {
  this.timeout(60_000);
  const stack = useStack();
  const browser = useBrowser();
  let dashboard: Dashboard;

  /** The curl command and the Python program as they are shown, with the new key in them: each signs the same. */
  const runShownCode = async (usageKey: string): Promise<void> => {
    const finish = dashboard.page.getByRole("region", { name: "Your first signature" });
    await finish.getByRole("button", { name: "Download receipt" }).waitFor();
    await finish.getByRole("button", { name: "Copy signature" }).click();
    const signature = String(await dashboard.page.evaluate("navigator.clipboard.readText()"));
    const folder = await mkdtemp(join(tmpdir(), "keywright-shown-"));
    for (const [choice, shown, script] of [
      ["curl", "curl command", (code: string) => code],
      ["Python", "Python code", (code: string) => `python3 - <<'END'\n${code}\nEND`],
    ] as const) {
      await finish.getByRole("radio", { name: choice }).check({ force: true });
      const code = await finish.getByRole("region", { name: shown }).innerText();
      expect(code, code).to.include(usageKey).and.include("// mine");
      const ran = await bash(script(code), folder, surroundings(folder, {}));
      expect(ran.text, shown).to.include(signature);
      expect(ran.code, shown).to.equal(0);
    }
    await finish.getByRole("radio", { name: "TypeScript" }).check({ force: true });
    expect(await finish.getByRole("region", { name: "SDK code" }).innerText()).to.include(usageKey);
    await rm(folder, { recursive: true });
  };

  it("makes account, PKP, action, group and key, sees the PKP sign, runs the code shown", async function () {
    await needs(this, "curl", "python3");
    dashboard = await Dashboard.open(browser(), stack().baseUrl, {
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
    // Whatever code is added is the code that the last step runs and shows.
    await dashboard.field("Code").press("Control+End");
    await dashboard.field("Code").pressSequentially("\n// mine");
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
    await runShownCode(usageKey);

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
