// Measures the gas of every call, compares it with the closest comparable public contract, and checks the bars.
//
//   npm run gas              measures and writes bench/gas.json and bench/gas.md
//   npm run gas -- --check   measures and fails if a figure differs from the committed ones
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import hre, { artifacts } from "hardhat";
import { accountManagerRows } from "./gas/accountManager";
import { allowlistRows } from "./gas/allowlist";
import { budgetRows } from "./gas/budgets";
import { must, type Row } from "./gas/measure";

interface Figures {
  bytecode: Record<string, number>;
  gas: Record<string, number>;
}

interface Bar {
  what: string;
  figure: number;
  max: number;
}

const JSON_FILE = join(__dirname, "../bench/gas.json");
const TABLE_FILE = join(__dirname, "../bench/gas.md");
const CONTRACTS = ["AccountManager", "ApiPayers", "AccountLists", "ApplicationAllowlist", "Budgets"];
/** Limit of run-time code: networks accept 24,576 bytes; keep some headroom. */
const MAX_BYTECODE = 19_500;

const ratio = (row: Row): number => row.gas / must(row.baseline);
const compared = (rows: Row[]): Row[] => rows.filter((row) => row.baseline !== undefined);
const geometricMean = (rows: Row[]): number =>
  Math.exp(rows.reduce((sum, row) => sum + Math.log(ratio(row)), 0) / rows.length);
const gasOf = (rows: Row[], name: RegExp): number =>
  Math.max(...rows.filter((row) => name.test(row.name)).map((row) => row.gas));

function bars(rows: Row[], figures: Figures): Bar[] {
  const inMeans = compared(rows).filter((row) => row.group !== "alone");
  // Group 1,000 is four words after group 223.
  const perWord = (gasOf(rows, /1000, key naming/) - gasOf(rows, /223, key naming/)) / 4;
  return [
    { what: "largest ratio of any row", figure: Math.max(...compared(rows).map(ratio)), max: 1 },
    { what: "geometric mean of all rows", figure: geometricMean(inMeans), max: 0.465 },
    {
      what: "geometric mean without deployment and keys with lists",
      figure: geometricMean(inMeans.filter((row) => row.group === "plain")),
      max: 0.62,
    },
    {
      what: "registration of a PKP",
      figure: Math.max(
        ...compared(rows)
          .filter((row) => row.name.startsWith("registerWallet"))
          .map(ratio),
      ),
      max: 0.73,
    },
    { what: "decision up to 223 groups", figure: gasOf(rows, /decision, last of (1|10|100|223),/), max: 44_500 },
    { what: "decision in 1,000 groups, wildcard key", figure: gasOf(rows, /1000, wildcard/), max: 92_000 },
    { what: "decision in 1,000 groups, key naming all", figure: gasOf(rows, /1000, key naming/), max: 101_000 },
    { what: "decision, each further 224 groups", figure: perWord, max: 14_000 },
    { what: "a lease of a counter in use", figure: gasOf(rows, /^budgets: lease again/), max: 35_000 },
    { what: "addGroup in 1,000 groups", figure: gasOf(rows, /^addGroup, account with/), max: 116_500 },
    { what: "registration beside 1,000 PKPs", figure: gasOf(rows, /^registerWallet.*account with/), max: 153_700 },
    { what: "setUsageApiKey beside 200 keys", figure: gasOf(rows, /^setUsageApiKey.*account with/), max: 172_800 },
    { what: "50 of 1,000 groups, any page", figure: gasOf(rows, /50 of 1,000$/), max: 1_000_000 },
    { what: "a full page of any list", figure: gasOf(rows, /^list[A-Z]/), max: 25_000_000 },
    ...Object.entries(figures.bytecode).map(([name, figure]) => ({
      what: `bytes of ${name} at run time`,
      figure,
      max: MAX_BYTECODE,
    })),
  ];
}

async function bytecodeSizes(): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {};
  for (const name of CONTRACTS) sizes[name] = ((await artifacts.readArtifact(name)).deployedBytecode.length - 2) / 2;
  return sizes;
}

const show = (figure: number): string => (figure < 10 ? figure.toFixed(3) : Math.round(figure).toLocaleString("en-US"));

function table(rows: Row[], held: Bar[]): string {
  const line = (row: Row): string =>
    `| ${row.name} | ${show(row.gas)} | ${row.baseline ? show(row.baseline) : ""} | ` +
    `${row.baseline ? ratio(row).toFixed(2) : ""} |`;
  return [
    "# Gas",
    "",
    "Written by `npm run gas`; CI measures again and fails when a figure has changed. Names have 16 bytes and",
    "descriptions 48. The sender is an API payer, the account is managed and already has entries. Figures are the",
    "`gasUsed` of receipts; a decision is measured as a transaction that calls the view, a list as a call.",
    "The baseline is the nearest public contract of this kind, a diamond with enumerable sets.",
    "",
    "| Call | Gas | Baseline | Ratio |",
    "|---|---:|---:|---:|",
    ...rows.map(line),
    "",
    "| Bar | Figure | At most |",
    "|---|---:|---:|",
    ...held.map((bar) => `| ${bar.what} | ${show(bar.figure)} | ${show(bar.max)} |`),
    "",
  ].join("\n");
}

/** The figures that differ from the committed ones. */
function moved(now: Figures): string[] {
  const before = JSON.parse(readFileSync(JSON_FILE, "utf8")) as Figures;
  const flat = (figures: Figures): Map<string, number> =>
    new Map(Object.entries({ ...figures.gas, ...figures.bytecode }));
  const [old, fresh] = [flat(before), flat(now)];
  const names = new Set([...old.keys(), ...fresh.keys()]);
  return [...names]
    .filter((name) => old.get(name) !== fresh.get(name))
    .map((name) => `${name}: ${old.get(name) ?? "-"} → ${fresh.get(name) ?? "-"}`);
}

async function main(): Promise<void> {
  await hre.run("compile", { quiet: true });
  const rows = [...(await accountManagerRows()), ...(await allowlistRows()), ...(await budgetRows())];
  const figures = { bytecode: await bytecodeSizes(), gas: Object.fromEntries(rows.map((row) => [row.name, row.gas])) };
  const all = bars(rows, figures);
  const broken = all
    .filter((bar) => bar.figure > bar.max)
    .map((bar) => `${bar.what}: ${show(bar.figure)} is above ${show(bar.max)}`);
  const text = table(rows, all);
  process.stdout.write(text);
  if (process.argv.includes("--check")) broken.push(...moved(figures));
  else {
    writeFileSync(JSON_FILE, `${JSON.stringify(figures, null, 2)}\n`);
    writeFileSync(TABLE_FILE, text);
  }
  for (const line of broken) process.stderr.write(`${line}\n`);
  process.exitCode = broken.length === 0 ? 0 : 1;
}

void main();
