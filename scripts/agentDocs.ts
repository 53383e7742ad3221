/**
 * Generates what agents read first from the documentation: docs/llms.txt, SKILL.md and AGENTS.md. `node
 * dist/scripts/agentDocs.js` writes them; a test checks that they are current.
 */
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

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

export function agentDocs(root: string): Record<"docs/llms.txt" | "SKILL.md" | "AGENTS.md", string> {
  const read = (file: string): string => readFileSync(join(root, file), "utf8");
  const about = introduction(read("README.md"));
  const list = (at: (name: string) => string): string =>
    pages(root)
      .map(({ name, title, about: what }) => `- [${title}](${at(name)}): ${what}`)
      .join("\n");
  const journey = section(read("docs/cli.md"), "From nothing to a signature");
  const llms = `# Keywright\n\n> ${about}\n\n## Pages\n\n${list((name) => `/docs/${name}`)}\n\n## Interfaces\n\n- [OpenAPI](/core/v1/openapi.json): the whole HTTP interface\n- \`npx keywright mcp\`: the same as tools of the Model Context Protocol, with a usage key\n`;
  const skill = `---\nname: keywright\ndescription: Make keys that only named code may use, run that code, and sign, encrypt or send transactions with them through a Keywright service.\n---\n\n# Keywright\n\n${about}\n\n## From nothing to a signature\n\n${journey}\n\n## Where to look\n\n${list((name) => `docs/${name}.md`)}\n`;
  const agents = `# Working on Keywright\n\n${about}\n\n## Import rules\n\n${section(read("ARCHITECTURE.md"), "Import rules")}\n\n## How a change is checked\n\n${section(read("CONTRIBUTING.md"), "How a change is checked")}\n\n## Code\n\n${section(read("CONTRIBUTING.md"), "Code")}\n\n## Tests\n\n${section(read("CONTRIBUTING.md"), "Tests")}\n`;
  return { "docs/llms.txt": llms, "SKILL.md": skill, "AGENTS.md": agents };
}

if (require.main === module)
  for (const [file, text] of Object.entries(agentDocs(process.cwd()))) writeFileSync(file, text);
