/** Each relative link of the documentation, to code, tests, pages or headings, has a target. */
import { expect } from "chai";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";

const ROOT = join(__dirname, "..", "..");
const PAGES = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...readdirSync(join(ROOT, "docs"), { recursive: true })
    .map((file) => join("docs", String(file)))
    .filter((file) => file.endsWith(".md")),
];

/** GitHub's rule for the anchor of a heading. */
const anchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replace(/\s/g, "-");

const anchors = (page: string): Set<string> =>
  new Set([...readFileSync(page, "utf8").matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => anchor(heading)));

function deadLinks(page: string): string[] {
  const text = readFileSync(join(ROOT, page), "utf8").replace(/```[\s\S]*?```/g, "");
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target) && !leadsSomewhere(page, target));
}

function leadsSomewhere(page: string, target: string): boolean {
  const [path = "", hash] = target.split("#");
  const file = path === "" ? join(ROOT, page) : join(ROOT, dirname(page), path);
  return existsSync(file) && (hash === undefined || !file.endsWith(".md") || anchors(file).has(hash));
}

describe("links in the documentation", () => {
  it("have existing targets", () => {
    expect(PAGES.length).to.be.greaterThan(20);
    expect(PAGES.flatMap((page) => deadLinks(page).map((target) => `${page}: ${target}`))).to.deep.equal([]);
  });
});
