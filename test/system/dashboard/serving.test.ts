/**
 * How the dashboard is served: one page under a strict policy, its files small, compressed, cached permanently, and
 * none from another host.
 */
import { expect } from "chai";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { request } from "undici";
import { useBrowser } from "../../support/browser";
import { Dashboard } from "../../support/dashboard";
import { newApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const FIRST_LOAD_JS_BYTES = 180_000;

describe("serving the dashboard", function () {
  this.timeout(60_000);
  const stack = useStack();
  const browser = useBrowser();

  const get = async (path: string, acceptEncoding = "identity") => {
    const { statusCode, headers, body } = await request(stack().baseUrl + path, {
      headers: { "accept-encoding": acceptEncoding },
    });
    return { status: statusCode, headers, bytes: Buffer.from(await body.arrayBuffer()) };
  };
  const script = async (): Promise<string> =>
    /src="(\/assets\/[^"]+\.js)"/.exec((await get("/")).bytes.toString())?.[1] ?? "";

  it("sends a page whose policy allows no foreign script, with a fresh nonce each time", async () => {
    const [one, other] = [await get("/"), await get("/")];
    const policy = String(one.headers["content-security-policy"]);
    expect(policy.replace(/nonce-[^']+/, "nonce-…")).to.equal(
      "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-…'; connect-src 'self'; frame-src 'none'; " +
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(other.headers["content-security-policy"]).to.not.equal(policy);
    expect(one.headers["cache-control"]).to.equal("no-store");
    const html = one.bytes.toString();
    expect(html, "every script is a file").to.not.match(/<script(?![^>]*\bsrc=)/);
    expect(html, "every file is the service's own").to.not.match(/(src|href)="(?!\/assets\/)/);
  });

  it("sends files with permanent caching, in the best encoding the client accepts", async () => {
    const path = await script();
    const plain = await get(path);
    expect([plain.status, plain.headers["cache-control"], plain.headers["vary"]]).to.deep.equal([
      200,
      "public, max-age=31536000, immutable",
      "Accept-Encoding",
    ]);
    expect(plain.headers["content-encoding"]).to.equal(undefined);
    const brotli = await get(path, "gzip, deflate, br");
    expect(brotli.headers["content-encoding"]).to.equal("br");
    expect(brotliDecompressSync(brotli.bytes).equals(plain.bytes)).to.equal(true);
    const gzip = await get(path, "br;q=0, gzip");
    expect(gzip.headers["content-encoding"]).to.equal("gzip");
    expect(gunzipSync(gzip.bytes).equals(plain.bytes)).to.equal(true);
  });

  it("serves no file but its own", async () => {
    for (const file of [
      "index.html",
      "..%2findex.html",
      "%2e%2e%2f.sources",
      "constructor",
      "__proto__",
      "index.js.br",
      "",
    ])
      expect((await get(`/assets/${file}`)).status, file).to.equal(404);
  });

  it("needs at most 180 kB of JavaScript for the overview, with charts and the steps of a new account", async () => {
    const dashboard = await Dashboard.open(browser(), stack().baseUrl);
    const { key, api } = await newApiAccount(stack().baseUrl);
    await api.must("/create_wallet", { name: "Vault" });
    await dashboard.signIn(key);
    await dashboard.page.getByRole("region", { name: "The last 30 days" }).locator("canvas").last().waitFor();
    await dashboard.page.getByRole("region", { name: "Your first signature" }).waitFor();
    await dashboard.page.waitForLoadState("networkidle");
    const files = (await dashboard.page.evaluate(
      "performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)",
    )) as string[];
    const scripts = [...new Set(files.filter((path) => /^\/assets\/.*\.js$/.test(path)))];
    const sizes = await Promise.all(scripts.map(async (path) => [(await get(path, "br")).bytes.length, path] as const));
    expect(scripts.length).to.be.greaterThan(1);
    expect(
      sizes.reduce((sum, [size]) => sum + size, 0),
      `brotli bytes of\n${sizes.map((one) => one.join(" ")).join("\n")}`,
    ).to.be.at.most(FIRST_LOAD_JS_BYTES);
    dashboard.expectCalm();
    await dashboard.close();
  });

  it("runs no script injected into the page", async () => {
    const dashboard = await Dashboard.open(browser(), stack().baseUrl);
    await dashboard.page.evaluate(
      "document.body.append(Object.assign(document.createElement('script'), { textContent: " +
        "'window.injected = true' }))",
    );
    expect(await dashboard.page.evaluate("window.injected")).to.equal(undefined);
    expect(dashboard.complaints).to.have.length(1);
    await dashboard.close();
  });
});
