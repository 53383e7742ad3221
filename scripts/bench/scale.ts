/**
 * `npm run bench:scale`: the cost of a run, a write and a read in each process, above all PostgreSQL, and on its disk.
 * Derives the capacity of one machine, and the needs of ten million runs a day and a million accounts. Writes
 * bench/scale.json and the measured part of docs/scale.md.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { measureCosts } from "./scale/costs";
import { measuredPart, type ScaleReport } from "./scale/page";

const ROOT = join(__dirname, "..", "..", "..");
const MARKERS = /<!-- measured -->[\s\S]*<!-- \/measured -->/;

async function main(): Promise<void> {
  const file = join(ROOT, "bench", "scale.json");
  const isMeasured = !process.argv.includes("--render");
  const on =
    `${cpus().length} cores (${cpus()[0]?.model.trim()}), load ${loadavg()[0]?.toFixed(1)} at the ` +
    "start, Node " +
    `${process.version}`;
  const report = isMeasured
    ? { on, costs: await measureCosts() }
    : (JSON.parse(readFileSync(file, "utf8")) as ScaleReport);
  if (isMeasured) writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`);
  const page = join(ROOT, "docs", "scale.md");
  writeFileSync(
    page,
    readFileSync(page, "utf8").replace(
      MARKERS,
      () => `<!-- measured -->\n\n${measuredPart(report)}\n\n<!-- /measured -->`,
    ),
  );
}

void main().then(() => process.exit());
