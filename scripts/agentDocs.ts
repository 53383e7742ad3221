/**
 * Generates what agents read first from the documentation: docs/llms.txt, SKILL.md and AGENTS.md. `node
 * dist/scripts/agentDocs.js` writes them; a test checks that they are current.
 */
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { VERSION } from "../protocol/version";

const first = (text: string, pattern: RegExp): string => pattern.exec(text)?.[1]?.trim() ?? "";

/** A page's title and its first paragraph as one sentence or two. */
function pages(root: string): { name: string; title: string; about: string }[] {
  const folder = join(root, "docs");
  return readdirSync(folder)
    .filter((file) => file.endsWith(".md"))
    .sort()
    .map((file) => {
      const text = readFileSync(join(folder, file), "utf8");
      const paragraph = first(text, /^# .+\n+([^\n#<|`-][\s\S]*?)\n\n/m)
        .replace(/\s+/g, " ")
        .replace(/\[([^\]]+)\]\([^)]*\)/g, "$1");
      return {
        name: file.slice(0, -3),
        title: first(text, /^# (.+)$/m),
        about: first(paragraph, /^(.{20,260}?[.:])(\s|$)/) || paragraph.slice(0, 200),
      };
    });
}

/** README.md's text before its picture. */
const introduction = (readme: string): string => first(readme, /^# .+\n+([\s\S]*?)\n\n!\[/m).replace(/\n/g, " ");
const section = (text: string, heading: string): string =>
  first(text, new RegExp(`^## ${heading}\\n+([\\s\\S]*?)(?=\\n## |$(?![\\s\\S]))`, "m"));

const SKILL_HEAD = [
  "---",
  "name: keywright",
  "description: Make keys that only named code may use, run that code, " +
    "and sign, encrypt or send transactions with them through a Keywright service.",
  "---",
].join("\n");

export function agentDocs(root: string): Record<"docs/llms.txt" | "SKILL.md" | "AGENTS.md", string> {
  const read = (file: string): string => readFileSync(join(root, file), "utf8");
  const about = introduction(read("README.md"));
  const list = (at: (name: string) => string): string =>
    pages(root)
      .map(({ name, title, about: what }) => `- [${title}](${at(name)}): ${what}`)
      .join("\n");

  const copied = (file: string, heading: string): string => `## ${heading}\n\n${section(read(file), heading)}`;
  const llms = [
    "# Keywright",
    `> ${about}`,
    "## Pages",
    list((name) => `/docs/${name}`),
    "## Interfaces",
    "- [OpenAPI](/core/v1/openapi.json): the whole HTTP interface\n" +
      "- [All pages in one](/llms-full.txt), [a skill](/SKILL.md); every page is also at its address with `.md`\n" +
      `- \`npm install <this service>/packages/keywright-${VERSION}.tgz\`: SDK, command line and verifier; no ` +
      "registry has the name\n" +
      "- `npx --no -- keywright mcp`, where that is installed: the same as tools of the Model Context Protocol, with " +
      "a usage key",
  ];
  const skill = [
    SKILL_HEAD,
    "# Keywright",
    about,
    copied("docs/cli.md", "From nothing to a signature"),
    "## Where to look",
    list((name) => `docs/${name}.md`),
  ];
  const agents = [
    "# Working on Keywright",
    about,
    copied("ARCHITECTURE.md", "Import rules"),
    ...["How a change is checked", "Code", "Tests"].map((heading) => copied("CONTRIBUTING.md", heading)),
  ];
  const page = (parts: readonly string[]): string => `${parts.join("\n\n")}\n`;
  return { "docs/llms.txt": page(llms), "SKILL.md": page(skill), "AGENTS.md": page(agents) };
}

if (require.main === module)
  for (const [file, text] of Object.entries(agentDocs(process.cwd()))) writeFileSync(file, text);
