/**
 * The table of limits in docs/actions.md, generated from the code's table: `node dist/scripts/action/limitsTable.js`
 * writes it.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { KIB, MIB, MAX_WALL_MS, RUN_LIMITS } from "../../protocol/limits";
import { OP_NAMES, opRow } from "../../protocol/ops";

const MARKERS = /<!-- limits -->[\s\S]*<!-- \/limits -->/;

const ROWS: Record<keyof typeof RUN_LIMITS, [what: string, show: (value: number) => string, beyond: string]> = {
  wallMs: [
    "time from start to end",
    (ms) => `${ms / 1_000} s (an operator may allow up to ${MAX_WALL_MS / 60_000} min; \`timeout_ms\` lowers it)`,
    "`timed_out`",
  ],
  heapMiB: ["memory", (mib) => `${mib} MiB`, "`out_of_memory`"],
  codeBytes: ["code", bytes, "refused: 413 `code_too_large`"],
  parseMs: ["time to parse it", (ms) => `${ms / 1_000} s`, "`limit_exceeded`"],
  paramsBytes: ["`js_params`, as JSON", bytes, "refused: 413 `params_too_large`"],
  responseBytes: ["response, as JSON", bytes, "`response_too_large`"],
  logsBytes: ["logs", bytes, "`logs_too_large`"],
  fetches: ["fetches", String, "`limit_exceeded`"],
  lookups: ["names looked up for them, each counted once", String, "the fetch fails, with the code `limit_exceeded`"],
  fetchTimeoutMs: ["time of one fetch", (ms) => `${ms / 1_000} s`, "the fetch fails, with the code `limit_exceeded`"],
  fetchBytes: ["body of one fetch, each way, decompressed", bytes, "the fetch fails, with the code `limit_exceeded`"],
  keyOps: ["key and signature operations", String, "`limit_exceeded`"],
  signBytes: [
    `arguments of one ${OP_NAMES.filter((name) => opRow(name).limit === "signBytes")
      .map((name) => `\`${name}\``)
      .join(", ")}, as JSON (sign a digest of what is longer)`,
    bytes,
    "`limit_exceeded`",
  ],
  typedDataBytes: ["arguments of one `signTypedData`, as JSON", bytes, "`limit_exceeded`"],
  typedDataTypes: ["its types", String, "`limit_exceeded`"],
  typedDataPaths: ["paths from one of its types to another, through their fields", String, "`limit_exceeded`"],
  typedDataHashBytes: ["all that is hashed for it, in blocks of 136 bytes", bytes, "`limit_exceeded`"],
  privateKeyReads: ["of these, reads of a private key", String, "`limit_exceeded`"],
  imports: ["imports", String, "`limit_exceeded`"],
  importBytes: ["one imported module", bytes, "`limit_exceeded`"],
};

function bytes(value: number): string {
  return value % MIB === 0 ? `${value / MIB} MiB` : `${value / KIB} KiB`;
}

export function limitsTable(): string {
  const rows = Object.entries(ROWS).map(([name, [what, show, beyond]]) => [
    what,
    show(RUN_LIMITS[name as keyof typeof RUN_LIMITS]),
    beyond,
    `\`${name}\``,
  ]);
  const table = [["What", "Limit", "Beyond it", "In `/limits`"], ["---", "---", "---", "---"], ...rows];
  return table.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Replaces the page's table with the generated one. */
export const withLimits = (page: string): string =>
  page.replace(MARKERS, `<!-- limits -->\n\n${limitsTable()}\n\n<!-- /limits -->`);

if (require.main === module) {
  const [, , file = "docs/actions.md"] = process.argv;
  writeFileSync(file, withLimits(readFileSync(file, "utf8")));
}
