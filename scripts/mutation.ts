// Mutation testing of the contract: which edits of its decisions and writes do the tests detect?
//
//   npm run mutation                       every mutant (hours); writes bench/mutation.md
//   npm run mutation -- --sample 100       a random sample (--seed), and the manual ones; --write writes the page
//   npm run mutation -- --by-hand          the manual ones only
//   npm run mutation -- --file Budgets     those of one file, by the end of its name
//   npm run mutation -- --minutes 30       starts no mutant after that time
//
// Fails below 97 % killed, or when a mutant survives that scripts/mutation/plan.ts does not explain. Mutants are found
// on the compiler's syntax tree and compiled together (scripts/mutation/schemata.ts), 200 at a time; the tests
// run in this process against Hardhat's chain, the likeliest to fail first, until one fails. Survivors are compiled
// alone: an edit that leaves the compiled code unchanged is no mutant.
import hre from "hardhat";
import { parseArgs } from "node:util";
import { EXPLAINED, FILES, BY_HAND } from "./mutation/plan";
import { loadTests, Runner } from "./mutation/runner";
import { compileAlone, compileSchemata, findMutants } from "./mutation/schemata";
import type { Mutant } from "./mutation/mutants";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { availableParallelism } from "node:os";

const CHUNK = 200;
const LEAST_KILLED = 0.97;

async function main(): Promise<void> {
  const text = { type: "string" } as const;
  const { values } = parseArgs({
    options: {
      sample: text,
      seed: text,
      minutes: text,
      file: text,
      "by-hand": { type: "boolean" },
      write: { type: "boolean" },
    },
  });
  const until = Date.now() + Number(values.minutes ?? Infinity) * 60_000;
  await hre.run("compile", { quiet: true });
  const all = findMutants(FILES, BY_HAND).filter(({ file }) => file.endsWith(`${values.file ?? ""}.sol`));
  const byHand = all.filter(({ operator }) => operator === "by hand");
  const drawn = sample(
    all.filter((mutant) => !byHand.includes(mutant)),
    values["by-hand"] === true ? 0 : Number(values.sample ?? all.length),
    Number(values.seed ?? 1),
  );
  const verdicts = await tried([...byHand, ...drawn], until);
  const judged = withoutEqual(verdicts);
  const { page, killed, unexplained } = report(judged, { found: all.length, tried: verdicts.length }, EXPLAINED);
  process.stdout.write(page);
  const isWhole = values.file === undefined && verdicts.length === all.length;
  if (isWhole || values.write === true) write(page);
  process.exit(killed >= LEAST_KILLED && unexplained === 0 ? 0 : 1);
}

/** The verdicts on the mutants that can be started before that time. */
async function tried(wanted: readonly Mutant[], until: number): Promise<Verdict[]> {
  const tests = loadTests();
  const verdicts: Verdict[] = [];
  for (let from = 0; from < wanted.length && Date.now() < until; from += CHUNK) {
    const chunk = wanted.slice(from, from + CHUNK);
    const runner = await Runner.start(compileSchemata(chunk), tests);
    for (const mutant of chunk) {
      if (Date.now() > until) break;
      const killer = await runner.killerOf(mutant);
      verdicts.push({ mutant, killer });
      process.stdout.write(`${verdicts.length}/${wanted.length} ${shown(mutant)}: ${killer ?? "LIVES"}\n`);
    }
    for (const title of runner.unsound)
      process.stdout.write(`not counted, since it fails without a mutant: ${title}\n`);
  }
  return verdicts;
}

/** Survivors that compile to the original's code are no mutants. */
function withoutEqual(verdicts: readonly Verdict[]): Verdict[] {
  const living = verdicts.filter(({ killer }) => killer === undefined);
  if (living.length === 0) return [...verdicts];
  const original = compileAlone(undefined);
  const equal = new Set(living.filter(({ mutant }) => compileAlone(mutant) === original));
  return verdicts.map((verdict) => (equal.has(verdict) ? { ...verdict, isEqual: true } : verdict));
}

/** All mutants, or a random sample by a seed. */
function sample(mutants: readonly Mutant[], size: number, seed: number): Mutant[] {
  let state = seed >>> 0;
  const random = (): number => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0);
  const drawn = mutants.map((mutant) => ({ mutant, at: random() })).sort((a, b) => a.at - b.at);
  return drawn.slice(0, size).map(({ mutant }) => mutant);
}

interface Verdict {
  readonly mutant: Mutant;
  /** The title of the test that failed; absent for a survivor. */
  readonly killer: string | undefined;
  /** True if it compiles to the original's code. */
  readonly isEqual?: boolean;
}

const FILE = join(__dirname, "../bench/mutation.md");

function report(
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

function write(page: string): void {
  writeFileSync(FILE, page);
}

/** A key that does not depend on line numbers. */
const keyOf = ({ file, place, original, text, nth }: Mutant): string =>
  `${file} ${place}: ${short(original)} → ${short(text)}${nth === 1 ? "" : ` (${nth})`}`;
const short = (text: string): string => text.replace(/\s+/g, " ").trim() || "(nothing)";
const shown = ({ file, line, place, operator, original, text }: Mutant): string =>
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

void main();
