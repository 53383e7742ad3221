/**
 * `npm run bench:chain`: writes per second against the bare node, list reads against the bare call, recovery after an outage of the node, and what one account
 * costs as it grows. Its own stack, rate limits raised by the environment. Writes bench/chain.json and bench/chain.md.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { growth, type GrowthRow } from "./chain/growth";
import { outage, type OutageResult } from "./chain/outage";
import { reads, type ReadResult } from "./chain/reads";
import { throughput, type ThroughputRow } from "./chain/throughput";

const ROOT = join(__dirname, "..", "..", "..");
const PAYER_COUNTS = [1, 4, 16];

interface Results {
  readonly machine: string;
  readonly throughput: readonly ThroughputRow[];
  readonly reads: ReadResult;
  readonly outage: OutageResult;
  readonly growth: readonly GrowthRow[];
}

function markdown({ machine, throughput, reads, outage, growth }: Results): string {
  const table = (head: readonly string[], rows: readonly (readonly unknown[])[]): string =>
    [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
  return `# Writes and reads through the relayer

${machine}. Node, executor, relayer with its embedded database and the load all share this machine. Made by \`npm run bench:chain\`.

## Writes per second

\`addGroup\` (name, no members) by as many payers as given. Bare: signed beforehand, sent to the node as fast as it takes them. Relayer: \`POST /add_group\`, ${throughput[0]?.accounts} accounts, each
one write after another; every answer after its receipt.

${table(
  ["chain", "payers", "bare node /s", "relayer /s", "ratio", "median answer ms", "CPU of a write: relayer ms", "executor ms", "node ms"],
  throughput.map((row) => [row.chain, row.payers, row.bare, row.relayer, row.ratio, row.medianMs, row.cpu.relayer, row.cpu.executor, row.cpu.node]),
)}

## List reads

\`GET /list_groups\` of ${reads.items} groups against \`eth_call\` of the same view, one at a time, median of ${reads.samples}.

${table(
  ["", "ms"],
  [
    ["eth_call", reads.callMs],
    ["list_groups", reads.routeMs],
    ["ratio", reads.ratio],
  ],
)}

## Outage

The node's connections cut for ${outage.outageMs / 1000} s under load of ${outage.accounts} accounts.

${table(
  ["", ""],
  [
    ["first write landed after the node was back, ms", outage.recoveryMs],
    ["writes asked", outage.asked],
    ["landed", outage.landed],
    ["answered without effect", outage.refused],
    ["doubled or lost", outage.wrong],
  ],
)}

## One account as it grows

${table(
  [
    "groups, PKPs, keys each",
    "addGroup gas",
    "registerWalletDerivation gas",
    "setUsageApiKey gas",
    "decision gas",
    "first page of 50 groups ms",
    "last page ms",
  ],
  growth.map((row) => [row.size, row.addGroup, row.registerPkp, row.setKey, row.decision, row.firstPageMs, row.lastPageMs]),
)}
`;
}

async function main(): Promise<void> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const results: Results = {
    machine: `${cpus().length} cores (${cpus()[0]?.model.trim()}), load ${loadavg()[0]?.toFixed(1)} at the start, Node ${process.version}`,
    throughput: await throughput(PAYER_COUNTS, say),
    reads: await reads(say),
    outage: await outage(say),
    growth: await growth(say),
  };
  mkdirSync(join(ROOT, "bench"), { recursive: true });
  writeFileSync(join(ROOT, "bench", "chain.json"), `${JSON.stringify(results, undefined, 2)}\n`);
  writeFileSync(join(ROOT, "bench", "chain.md"), markdown(results));
  process.stdout.write(markdown(results));
}

main().then(
  () => process.exit(),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
