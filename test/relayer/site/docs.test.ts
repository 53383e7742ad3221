/**
 * The documentation as the service serves it: every page, every anchor that an error or another page links to, and no
 * scripts.
 */
import { expect } from "chai";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { ERRORS } from "../../../protocol/errors";
import { openDocs } from "../../../relayer/site/docs";
import { useStack } from "../../support/stack";

const PAGES = readdirSync(join(__dirname, "..", "..", "..", "docs"))
  .filter((file) => file.endsWith(".md"))
  .map((file) => file.slice(0, -3));

describe("the documentation's pages", () => {
  const docs = openDocs("Keywright");
  const contentOf = (name: string): string => docs.page(name)?.content ?? "";

  it("exist for every file, and link to each other: no link or anchor is dead", () => {
    for (const name of PAGES) {
      const html = contentOf(name);
      expect(html, name).to.include("<h1");
      for (const [, page = "", anchor] of html.matchAll(/href="\/docs\/([a-z-]*)(#[^"]*)?"/g)) {
        if (page === "") continue;
        expect(PAGES, `${name} → ${page}`).to.include(page);
        if (anchor !== undefined)
          expect(contentOf(page), `${name} → ${page}${anchor}`).to.include(`id="${anchor.slice(1)}"`);
      }
    }
  });

  it("explain every error code at its anchor", () => {
    for (const code of Object.keys(ERRORS)) expect(contentOf("errors")).to.include(`id="${code}"`);
  });

  it("contain no script and allow none", () => {
    for (const name of ["index", ...PAGES]) {
      expect(contentOf(name)).to.not.match(/<script|javascript:|\son\w+=/i);
      const policy = docs.page(name)?.headers["Content-Security-Policy"] ?? "";
      expect(policy).to.include("default-src 'none'").and.to.not.include("unsafe-inline");
    }
  });

  it("do not exist under any other name", () => {
    for (const name of ["", "nothing", "../package", "constructor", "__proto__"])
      expect(docs.page(name)).to.equal(undefined);
  });

  describe("from a running service", () => {
    const stack = useStack();

    it("open from the type of an error", async () => {
      const answer = await fetch(`${stack().baseUrl}/core/v1/list_groups`);
      const { type, code } = (await answer.json()) as { type: string; code: string };
      expect(type).to.equal(`${stack().baseUrl}/docs/errors#${code}`);
      const page = await fetch(type);
      expect([page.status, page.headers.get("content-type")]).to.deep.equal([200, "text/html; charset=utf-8"]);
      expect(page.headers.get("content-security-policy")).to.include("default-src 'none'");
      expect(await page.text()).to.include(`id="${code}"`);
    });

    it("list an index and the files for programs, and refuse other names", async () => {
      const statusOf = async (path: string): Promise<number> => (await fetch(stack().baseUrl + path)).status;
      expect(
        await Promise.all(
          ["/docs", "/docs/sdk", "/llms.txt", "/docs/nothing", "/docs/..%2fpackage.json"].map(statusOf),
        ),
      ).to.deep.equal([200, 200, 200, 404, 400]);
      const sent = async (path: string, accept = "*/*"): Promise<string> => {
        const answer = await fetch(stack().baseUrl + path, { headers: { accept } });
        return `${answer.headers.get("content-type") ?? ""} ${(await answer.text()).slice(0, 9)}`;
      };
      for (const source of [sent("/docs/sdk.md"), sent("/docs/sdk", "text/markdown, text/html;q=0.9")])
        expect(await source).to.equal("text/markdown; charset=utf-8 # The SDK");
      expect(await sent("/docs", "text/markdown")).to.equal("text/markdown; charset=utf-8 # Documen");
      expect(await sent("/docs/sdk", "text/html")).to.include("text/html");
      expect(await sent("/SKILL.md"))
        .to.include("text/markdown")
        .and.to.include("---");
      const all = await (await fetch(`${stack().baseUrl}/llms-full.txt`)).text();
      expect(all).to.include("# Coming from Lit").and.to.include("# The SDK");
    });
  });
});
