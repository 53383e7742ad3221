/**
 * `npm run bench:chain`: writes per second against the bare node, list reads against the bare call, and recovery after
 * an outage of the node. Starts its own stack with raised rate limits. Writes bench/chain.json and bench/chain.md.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { outage, type OutageResult } from "./chain/outage";
import { reads, type ReadResult } from "./chain/reads";
import { throughput, throughputOnPostgres, type ThroughputRow } from "./chain/throughput";

const ROOT = join(__dirname, "..", "..", "..");
/** `payers=4` measures only with that many payers. */
const ASKED_PAYERS = process.argv.flatMap((argument) =>
  argument.startsWith("payers=") ? [Number(argument.slice("payers=".length))] : [],
);
const PAYER_COUNTS = ASKED_PAYERS.length > 0 ? ASKED_PAYERS : [1, 4, 16];

/** Each part on its own stack; `npm run bench:chain -- reads outage` measures only these again. */
const PARTS = {
  throughput: (say: Say): Promise<readonly ThroughputRow[]> => throughput(PAYER_COUNTS, say),
  postgres: (say: Say): Promise<readonly ThroughputRow[]> => throughputOnPostgres(PAYER_COUNTS, say),
  reads: (say: Say): Promise<ReadResult> => reads(say),
  outage: (say: Say): Promise<OutageResult> => outage(say),
};
type Say = (line: string) => void;
type PartName = keyof typeof PARTS;
type Part<N extends PartName> = Awaited<ReturnType<(typeof PARTS)[N]>>;
/** Where and when a part was measured, since other load on the machine affects its figures. */
type Results = { readonly [N in PartName]: { readonly on: string; readonly result: Part<N> } };

const table = (head: readonly string[], rows: readonly (readonly unknown[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");

const throughputTable = (rows: readonly ThroughputRow[]): string =>
  `${table(
    ["chain", "payers", "accounts", "bare node /s", "relayer /s", "ratio", "median answer ms", "one write alone, ms"],
    rows.map((row) => [
      row.chain,
      row.payers,
      row.accounts,
      row.bare,
      row.relayer,
      row.ratio,
      row.medianMs,
      row.aloneMs,
    ]),
  )}

${table(
  ["chain", "payers", "gas of a write alone", "in a batch", "of so many", "ratio"],
  rows.map(({ chain, payers, gas }) => [chain, payers, gas.alone, gas.together, gas.batchSize, gas.ratio]),
)}`;

const SECTIONS: { readonly [N in PartName]: (result: Part<N>) => string } = {
  throughput: (rows) => `## Writes per second

\`addGroup\` (name, no members) with the given number of payers. Bare: transactions signed beforehand and sent to the
node, as many at once as there are accounts; when one is mined, the next is sent. Relayer: \`POST /add_group\`, one
write after another for each account, each answered after its receipt.

${throughputTable(rows)}`,
  postgres: (rows) => `## The same on PostgreSQL

Each row on an empty database of Debian's PostgreSQL on the same machine.

${throughputTable(rows)}`,
  reads: ({ items, samples, callMs, routeMs, ratio }) => `## List reads

\`GET /list_groups\` of ${items} groups against \`eth_call\` of the same view, alternating, one at a time.
Median of ${samples}.

${table(["eth_call ms", "list_groups ms", "ratio"], [[callMs, routeMs, ratio]])}`,
  outage: ({ outageMs, accounts, recoveryMs, asked, landed, refused, wrong }) => `## Outage

The node's connections cut for ${outageMs / 1000} s under the load of ${accounts} accounts.

${table(
  [
    "first write landed after the node was back, ms",
    "writes asked",
    "landed",
    "answered with nothing spent",
    "accounts with a write lost or doubled",
  ],
  [[recoveryMs, asked, landed, refused, wrong]],
)}`,
};

function section<N extends PartName>(name: N, measured: Partial<Results>): string {
  const part = measured[name];
  return part === undefined ? "" : `\n${SECTIONS[name](part.result)}\n\n*${part.on}*\n`;
}

function markdown(measured: Partial<Results>): string {
  const sections = (Object.keys(PARTS) as PartName[]).map((name) => section(name, measured));
  return `# Writes and reads through the relayer

Made by \`npm run bench:chain\`. Node, executor, relayer with its database and the load generator share one
machine. Each part states the machine's load at its start. Compare only figures of the same part.
${sections.join("")}`;
}

function describeMachine(): string {
  return (
    `${cpus().length} cores (${cpus()[0]?.model.trim()}), load ${loadavg()[0]?.toFixed(1)} at the start, Node ` +
    `${process.version}`
  );
}

async function main(): Promise<void> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const file = join(ROOT, "bench", "chain.json");
  const asked = process.argv.slice(2).filter((argument) => !argument.includes("="));
  // What is measured whole replaces all earlier results, which may have another shape.
  const isWhole = asked.length === 0;
  const earlier = !isWhole && existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Partial<Results>) : {};
  const names = (Object.keys(PARTS) as PartName[]).filter((name) => isWhole || asked.includes(name));
  const measured: Partial<Record<PartName, unknown>> = { ...earlier };
  mkdirSync(join(ROOT, "bench"), { recursive: true });
  // Renders the existing results when no known part is requested.
  writeFileSync(join(ROOT, "bench", "chain.md"), markdown(earlier));
  for (const name of names) {
    const on = describeMachine();
    measured[name] = { on, result: await PARTS[name](say) };
    writeFileSync(file, `${JSON.stringify(measured, undefined, 2)}\n`);
    writeFileSync(join(ROOT, "bench", "chain.md"), markdown(measured as Partial<Results>));
  }
}

void main().then(() => process.exit());
