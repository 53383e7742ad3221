/**
 * "All settings" of docs/operations.md, generated from the services' own configuration: `node
 * dist/scripts/operator/settingsTable.js` writes it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { EXECUTOR_VARIABLES } from "../../executor/config";
import { INGRESS_VARIABLES } from "../../ingress/config";
import { RELAYER_VARIABLES } from "../../relayer/config";

const MARKERS = /<!-- settings -->[\s\S]*<!-- \/settings -->/;

const SERVICES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  relayer: RELAYER_VARIABLES,
  executor: EXECUTOR_VARIABLES,
  ingress: INGRESS_VARIABLES,
};

export function settingsTable(): string {
  const names = [...new Set(Object.values(SERVICES).flatMap((variables) => Object.keys(variables)))].sort();
  return ["| Variable | Of | Meaning |", "|---|---|---|", ...names.map(rowOf)].join("\n");
}

/** One sentence where all services share the meaning, else one for each. */
function rowOf(name: string): string {
  const meanings = Object.entries(SERVICES).flatMap(([service, variables]) =>
    variables[name] === undefined ? [] : [{ service, text: variables[name] }],
  );
  const [first] = meanings;
  const isOne = meanings.every(({ text }) => text === first?.text);
  const meaning = isOne ? (first?.text ?? "") : meanings.map(({ service, text }) => `${service}: ${text}`).join("; ");
  return `| \`${name}\` | ${meanings.map(({ service }) => service).join(", ")} | ${meaning.replaceAll("|", "\\|")} |`;
}

/** Replaces the page's table with the generated one. */
export const withSettings = (page: string): string =>
  page.replace(MARKERS, `<!-- settings -->\n\n${settingsTable()}\n\n<!-- /settings -->`);

if (require.main === module) {
  const [, , file = "docs/operations.md"] = process.argv;
  writeFileSync(file, withSettings(readFileSync(file, "utf8")));
}
