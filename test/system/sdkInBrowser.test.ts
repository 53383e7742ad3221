/**
 * The SDK's bundle in a real page, on another origin than the service: API mode with a key, ChainSecured with a wallet
 * extension.
 */
import { expect } from "chai";
import { statSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { launchBrowser, openPage, serveSite, type Site } from "../support/browser";
import { useStack } from "../support/stack";

const ROOT = join(__dirname, "..", "..");
const BUNDLE = join(ROOT, "dist", "client", "browser", "keywright.mjs");
const FILES = {
  "/keywright.mjs": BUNDLE,
  "/cid.mjs": join(ROOT, "dist", "client", "browser", "cid.mjs"),
  "/ethers.js": join(ROOT, "node_modules", "ethers", "dist", "ethers.min.js"),
  "/journey.mjs": join(__dirname, "browser", "journey.mjs"),
};
/** An account of the development chain, for which the chain signs as a wallet extension would. */
const UNLOCKED = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";

describe("the SDK in a browser page", () => {
  const stack = useStack();
  let browser: Browser;
  let site: Site;
  let page: Page;
  let problems: string[];

  before(async function () {
    this.timeout(60_000);
    site = await serveSite(FILES);
    browser = await launchBrowser();
    ({ page, problems } = await openPage(browser, site));
  });
  after(async () => {
    await browser?.close();
    site?.stop();
  });

  const inPage = <T>(call: string): Promise<T> =>
    page.evaluate(`import("/journey.mjs").then((journey) => journey.${call})`);
  const text = JSON.stringify;

  it("completes the main flow in API mode", async () => {
    const answer = await inPage<Record<string, string>>(`apiMode(${text(stack().baseUrl)})`);
    expect(answer["recovered"]).to.equal(answer["pkp"]);
    expect(answer["cid"]).to.equal(answer["asked"]);
    expect(answer["groups"]).to.equal(1);
    expect(problems).to.deep.equal([]);
  });

  it("completes a ChainSecured owner's flow with a wallet extension", async () => {
    const { baseUrl, rpcUrl } = stack();
    const answer = await inPage<Record<string, unknown>>(
      `chainSecured(${text(baseUrl)}, ${text(rpcUrl)}, ${text(UNLOCKED)})`,
    );
    expect(answer).to.deep.include({
      steps: ["minted", "sending", "done"],
      owner: UNLOCKED,
      cents: 2000 - 1,
      refused: "unknown_group",
    });
    expect(answer["recovered"]).to.equal(answer["pkp"]);
  });

  it("gives errors as typed codes, request ids included: CORS exposes them to the page", async () => {
    expect(await inPage(`refusals(${text(stack().baseUrl)})`)).to.deep.equal([
      [true, "unknown_key", 401, "string"],
      [true, "missing_credential", 401, "string"],
      [true, "invalid_argument", null, "undefined"],
      [true, "network_failed", null, "undefined"],
    ]);
  });

  it("is one file of a reasonable size", () => {
    expect(statSync(BUNDLE).size).to.be.within(20_000, 200_000);
  });
});
