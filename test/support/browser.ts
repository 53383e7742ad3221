/** Chromium, headless, and pages served from their own origin. */
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";

/** Debian's without windows takes half of the others' time; the same engine. */
const PROGRAMS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

export function launchBrowser(): Promise<Browser> {
  const executablePath = PROGRAMS.map((name) => join("/usr/bin", name)).find(existsSync);
  if (executablePath === undefined)
    throw new Error("The browser tests need Chromium: apt-get install chromium-headless-shell.");
  const asRoot = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, headless: true, args: [...asRoot, "--disable-dev-shm-usage"] });
}

let shared: Promise<Browser> | undefined;

/** One browser for all tests of a mocha process. Call inside `describe`; tests get it from the returned function. */
export function useBrowser(): () => Browser {
  let browser: Browser | undefined;
  before(async function () {
    this.timeout(60_000);
    shared ??= launchBrowser();
    browser = await shared;
  });
  return () => {
    if (browser === undefined) throw new Error("the browser is there once the tests run");
    return browser;
  };
}

// Imported at the top of a test file, this is a hook of mocha's root suite.
after(async () => void (await (await shared?.catch(() => undefined))?.close()));

const TYPES: Record<string, string> = { ".mjs": "text/javascript", ".js": "text/javascript", ".html": "text/html" };

export interface Site {
  readonly origin: string;
  stop(): void;
}

/** Serves these files (path → file) and an empty page at "/". */
export async function serveSite(files: Readonly<Record<string, string>>): Promise<Site> {
  const server = createServer((request, response) => {
    const file = files[request.url ?? ""];
    if (request.url === "/")
      response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>page</title>");
    else if (request.url === "/favicon.ico") response.writeHead(204).end();
    else if (file === undefined) response.writeHead(404).end();
    else response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "text/plain" }).end(readFileSync(file));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

/** Opens the site's page and collects its problems, console errors included. */
export async function openPage(browser: Browser, site: Site): Promise<{ page: Page; problems: string[] }> {
  const page = await (await browser.newContext()).newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(message.text());
  });
  await page.goto(site.origin);
  return { page, problems };
}
