/** "All settings" of docs/operations.md, made from the services' own configuration: `node dist/scripts/operator/settingsTable.js` writes it. */
import { readFileSync, writeFileSync } from "node:fs";
import { EXECUTOR_VARIABLES } from "../../executor/config";
import { RELAYER_VARIABLES } from "../../relayer/config";

const MARKERS = /<!-- settings -->[\s\S]*<!-- \/settings -->/;

export function settingsTable(): string {
  const names = [...new Set([...Object.keys(RELAYER_VARIABLES), ...Object.keys(EXECUTOR_VARIABLES)])].sort();
  const rows = names.map((name) => {
    const [relayer, executor] = [RELAYER_VARIABLES[name], EXECUTOR_VARIABLES[name]];
    const of = relayer === undefined ? "executor" : executor === undefined ? "relayer" : "both";
    const meaning =
      relayer === undefined || executor === undefined || relayer === executor ? (relayer ?? executor) : `relayer: ${relayer}; executor: ${executor}`;
    return `| \`${name}\` | ${of} | ${(meaning ?? "").replaceAll("|", "\\|")} |`;
  });
  return ["| Variable | Of | Meaning |", "|---|---|---|", ...rows].join("\n");
}

/** The page with its table as the code has it. */
export const withSettings = (page: string): string => page.replace(MARKERS, `<!-- settings -->\n\n${settingsTable()}\n\n<!-- /settings -->`);

if (require.main === module) {
  const [, , file = "docs/operations.md"] = process.argv;
  writeFileSync(file, withSettings(readFileSync(file, "utf8")));
}
