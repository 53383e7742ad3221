/**
 * The standard actions: the SDK's source, the documentation and the pinned CIDs are the same files.
 * `KEYWRIGHT_UPDATE=1` writes the first two.
 */
import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cidOfCode } from "../../client/cid";
import { STANDARD_ACTIONS } from "../../client/standardActions";

const ROOT = join(__dirname, "..", "..");
const FOLDER = join(ROOT, "client", "standard");
const TABLE = join(ROOT, "client", "standardActions.ts");
const PAGE = join(ROOT, "docs", "standard-actions.md");
const MARKERS = /<!-- actions -->[\s\S]*<!-- \/actions -->/;

/** Published CIDs: groups on chain list them. A changed file is a new action, never new text under an old name. */
const PUBLISHED = JSON.parse(readFileSync(join(__dirname, "standardCids.json"), "utf8")) as Record<string, string>;

const names = readdirSync(FOLDER)
  .map((file) => file.replace(/\.js$/, ""))
  .sort();
const codeOf = (name: string): string => readFileSync(join(FOLDER, `${name}.js`), "utf8");
const camel = (name: string): string => name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());

async function table(): Promise<Record<string, { cid: string; code: string }>> {
  return Object.fromEntries(
    await Promise.all(
      names.map(async (name) => [camel(name), { cid: await cidOfCode(codeOf(name)), code: codeOf(name) }] as const),
    ),
  );
}

function page(entries: Awaited<ReturnType<typeof table>>): string {
  const parts = names.map(
    (name) =>
      `## ${name}\n\n\`${entries[camel(name)]?.cid ?? ""}\`\n\n<!-- prettier-ignore ` +
      `-->\n\`\`\`js\n${codeOf(name)}\`\`\``,
  );
  return `<!-- actions -->\n\n${parts.join("\n\n")}\n\n<!-- /actions -->`;
}

describe("the standard actions", () => {
  it("are sent as published", async () => {
    const fresh = await table();
    if (process.env["KEYWRIGHT_UPDATE"] === "1") {
      const head =
        "/** Written from client/standard by KEYWRIGHT_UPDATE=1 npx mocha test/client/standardActions.test.ts; " +
        "never by hand. docs/standard-actions.md shows them. */";
      writeFileSync(
        TABLE,
        `${head}\nexport const STANDARD_ACTIONS = ${JSON.stringify(fresh, null, 2)} as const;\n\nexport type ` +
          `StandardAction = keyof typeof STANDARD_ACTIONS;\n`,
      );
      execFileSync("npx", ["prettier", "--write", TABLE]);
    } else expect(STANDARD_ACTIONS).to.deep.equal(fresh);
    expect(Object.fromEntries(Object.entries(fresh).map(([name, { cid }]) => [name, cid]))).to.deep.equal(PUBLISHED);
  });

  it("are printed unchanged on docs/standard-actions.md", async () => {
    const text = readFileSync(PAGE, "utf8");
    const entries = await table();
    const fresh = text.replace(MARKERS, () => page(entries));
    if (process.env["KEYWRIGHT_UPDATE"] === "1") writeFileSync(PAGE, fresh);
    else expect(text).to.equal(fresh);
  });
});
