/** The results as a page. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { availableParallelism } from "node:os";
import type { Mutant } from "./mutants";

export interface Verdict {
  readonly mutant: Mutant;
  /** The title of the test that failed; absent for a survivor. */
  readonly killer: string | undefined;
  /** True if it compiles to the original's code. */
  readonly isEqual?: boolean;
}

const FILE = join(__dirname, "../../bench/mutation.md");

export function report(
  verdicts: readonly Verdict[],
  { found, tried }: { found: number; tried: number },
  explained: Readonly<Record<string, string>>,
): { page: string; killed: number; unexplained: number } {
  const real = verdicts.filter(({ isEqual }) => isEqual !== true);
  const living = real
    .filter(({ killer }) => killer === undefined)
    .map(({ mutant }) => ({ mutant, why: explained[keyOf(mutant)] }));
  const killed = real.length === 0 ? 1 : (real.length - living.length) / real.length;
  const unexplained = living.filter(({ why }) => why === undefined).length;
  const page = [
    "# Mutation testing of the contract",
    "",
    "Written by `npm run mutation`, for a sample also by `npm run test:deep`. Mutants are small edits of decisions",
    "and writes: most are generated from the compiler's syntax tree and drawn by a seed, some are written by hand.",
    "A mutant is killed when a contract test fails. Mutants that compile to the original's code are not counted.",
    "",
    `${new Date().toISOString().slice(0, 10)}, ${availableParallelism()} cores, Node ${process.version}.`,
    "",
    "| | |",
    "|---|---:|",
    `| mutants found | ${found} |`,
    `| tried | ${tried}${tried < found ? " (a sample)" : ""} |`,
    `| equal to the original | ${verdicts.length - real.length} |`,
    `| killed | ${real.length - living.length} |`,
    `| living | ${living.length} |`,
    `| **killed share** | **${(100 * killed).toFixed(1)} %** |`,
    "",
    "| File | Tried | Killed |",
    "|---|---:|---:|",
    ...perFile(real),
    "",
    "## Survivors",
    "",
    ...(living.length === 0
      ? ["None."]
      : living.map(({ mutant, why }) => `- ${shown(mutant)}. ${why ?? "**Not explained.**"}`)),
    "",
  ].join("\n");
  return { page, killed, unexplained };
}

export function write(page: string): void {
  writeFileSync(FILE, page);
}

/** A key that does not depend on line numbers. */
const keyOf = ({ file, place, original, text, nth }: Mutant): string =>
  `${file} ${place}: ${short(original)} → ${short(text)}${nth === 1 ? "" : ` (${nth})`}`;
const short = (text: string): string => text.replace(/\s+/g, " ").trim() || "(nothing)";
export const shown = ({ file, line, place, operator, original, text }: Mutant): string =>
  `${file.replace("contracts/", "")}:${line} ${place}, ${operator}: \`${short(original)}\` → \`${short(text)}\``;

function perFile(verdicts: readonly Verdict[]): string[] {
  const files = [...new Set(verdicts.map(({ mutant }) => mutant.file))].sort();
  return files.map((file) => {
    const here = verdicts.filter(({ mutant }) => mutant.file === file);
    return (
      `| ${file.replace("contracts/", "")} | ${here.length} | ` +
      `${here.filter(({ killer }) => killer !== undefined).length} |`
    );
  });
}
