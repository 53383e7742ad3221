/**
 * `npm run bench:abuse`: how hostile accounts affect another account. Starts its own stack with the compose file's
 * memory for actions. First each attack of one account, then each attack by crowds of 2, 9 and 64 accounts; at last,
 * after ten minutes, whether everything is as before. Prints a table, writes bench/abuse.json, and exits with 1 when a
 * bar is missed.
 *
 * - `--short`: five seconds for each attack, twenty before the last look; writes nothing.
 * - `--seconds n`, `--settle n`, `--accounts 2,9,64`: of each attack, before the last look, in each crowd.
 * - `--only text`: only attacks whose name has this text; `--crowds-only`: only those by crowds. Writes nothing either.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { attacks } from "./abuse/attacks";
import { MEMORY_LIMITS_MIB, withBed, type Bed } from "./abuse/bed";
import { CROWD_BARS, measureAfter, measureCrowd, measureQuiet, printCrowdRow, type CrowdRow } from "./abuse/crowdRows";
import { CROWD_ATTACKS } from "./abuse/crowds";
import { measureSingle, printSingleRow, SINGLE_BARS, warmUp, type SingleRow } from "./abuse/singleRows";

interface Options {
  readonly seconds: number;
  readonly settleSeconds: number;
  readonly crowds: readonly number[];
  readonly only: string;
  readonly isCrowdsOnly: boolean;
  /** Of everything, for as long as it takes. */
  readonly isWhole: boolean;
}

function optionsOf(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      short: { type: "boolean", default: false },
      seconds: { type: "string" },
      settle: { type: "string" },
      accounts: { type: "string", default: "2,9,64" },
      only: { type: "string", default: "" },
      "crowds-only": { type: "boolean", default: false },
    },
  });
  const { short: isShort, accounts, only, "crowds-only": isCrowdsOnly } = values;
  return {
    seconds: Number(values.seconds ?? (isShort ? 5 : 15)),
    settleSeconds: Number(values.settle ?? (isShort ? 20 : 600)),
    crowds: accounts.split(",").map(Number),
    only,
    isCrowdsOnly,
    isWhole: !isShort && !isCrowdsOnly && only === "",
  };
}

async function singleRows(bed: Bed, { seconds, only }: Options): Promise<SingleRow[]> {
  const chosen = attacks({ sinkUrl: `http://${bed.attackersServers}/` }).filter(({ name }) => name.includes(only));
  const rows: SingleRow[] = [];
  for (const attack of [undefined, ...chosen]) {
    const row = await measureSingle(bed, attack, seconds, rows[0]?.hello.p99 ?? Infinity);
    rows.push(row);
    printSingleRow(row);
  }
  return rows;
}

async function crowdRows(bed: Bed, { seconds, settleSeconds, crowds, only }: Options): Promise<CrowdRow[]> {
  const quiet = await measureQuiet(bed, "none", seconds);
  const rows = [quiet];
  printCrowdRow(quiet);
  for (const attack of CROWD_ATTACKS.filter(({ name }) => name.includes(only)))
    for (const accounts of crowds) {
      const row = await measureCrowd(bed, attack, accounts, seconds, quiet);
      rows.push(row);
      printCrowdRow(row);
    }
  await sleep(settleSeconds * 1_000);
  const after = await measureAfter(bed, quiet, seconds);
  printCrowdRow(after);
  return [...rows, after];
}

async function main(): Promise<void> {
  const options = optionsOf(process.argv.slice(2));
  await withBed(Math.max(2, ...options.crowds), async (bed) => {
    await warmUp(bed);
    const single = options.isCrowdsOnly ? [] : await singleRows(bed, options);
    const crowds = await crowdRows(bed, options);
    if (options.isWhole) writeReport(options, single, crowds);
    if ([...single, ...crowds].some(({ problems }) => problems.length > 0)) process.exitCode = 1;
  });
}

function writeReport({ seconds }: Options, single: readonly SingleRow[], crowds: readonly CrowdRow[]): void {
  const inWords = <T extends { readonly problems: readonly string[] }>(rows: readonly T[]): object[] =>
    rows.map((row) => ({ ...row, problems: row.problems.join("; ") }));
  const report = {
    node: process.version,
    cpus: availableParallelism(),
    secondsEach: seconds,
    bars: { single: SINGLE_BARS, crowds: CROWD_BARS, memoryLimitsMiB: MEMORY_LIMITS_MIB },
    single: inWords(single),
    crowds: inWords(crowds),
  };
  writeFileSync(join("bench", "abuse.json"), `${JSON.stringify(report, null, 2)}\n`);
}

void main();
