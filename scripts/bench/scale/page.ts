/**
 * The measured part of docs/scale.md: the costs, the resulting capacity of one machine, and the needs of a large
 * deployment.
 */
import type { Cost, Costs, Kind } from "./costs";

export interface ScaleReport {
  /** Where and when it was measured. */
  readonly on: string;
  readonly costs: Costs;
}

/** The used share of a core; the rest is for bursts, restarts and the loss of a machine. */
const USED = 0.6;
const DAY_SECONDS = 86_400;
/** Ratio of the busiest second to the daily mean. */
const PEAK = 3;

const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");

const KINDS: readonly Kind[] = ["run", "write", "read"];
const whole = (value: number): string => Math.round(value).toLocaleString("en-US");
const inGiB = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

export function measuredPart({ on, costs }: ScaleReport): string {
  return `### One request

${costTable(costs)}

Measured by \`npm run bench:scale\` on ${on}.
Load generator, node and all services share that machine: compare the CPU times, not the rates. A run is a hello over
HTTP that sends its code, with 8 callers. A write is \`add_group\`, from 64 accounts and with a block each second, so
writes go in batches. A read is \`list_groups\`. The log is the WAL that a standby or an archive receives. Each idle
machine costs PostgreSQL ${costs.idle.cpuMs.postgres.toFixed(1)} ms of CPU and the chain's endpoint
${costs.idle.rpcCalls.toFixed(1)} calls a second.

### One machine

Capacity of relayer and executor on a machine with four cores, and of one core of PostgreSQL, when ${USED * 100} % of
the CPU time is used:

${capacityTable(costs)}

### Ten million runs a day, a million accounts

${largeTable(costs)}`;
}

const costTable = (costs: Costs): string =>
  table(
    [
      "Request",
      "CPU ms: relayer",
      "executor",
      "PostgreSQL",
      "chain node",
      "transactions",
      "log, bytes",
      "disk, bytes",
      "RPC calls",
    ],
    KINDS.map((kind) => [kind, ...cells(costs[kind])]),
  );

const cells = ({ cpuMs, transactions, walBytes, diskBytes, rpcCalls }: Cost): readonly (string | number)[] => [
  ...[cpuMs.relayer, cpuMs.executor, cpuMs.postgres, cpuMs.node].map((ms) => ms.toFixed(2)),
  ...[transactions, whole(walBytes), whole(Math.max(0, diskBytes)), rpcCalls],
];

const CORES = 4;
const perSecondOfCores = (ms: number, cores: number): number => (cores * USED * 1_000) / ms;
/** The relayer uses one core; the executor has children on all cores. */
const ofMachine = ({ cpuMs }: Cost): number =>
  Math.min(perSecondOfCores(cpuMs.relayer, 1), perSecondOfCores(cpuMs.relayer + cpuMs.executor, CORES));

const capacityTable = (costs: Costs): string =>
  table(
    [
      "Request",
      "a machine of four cores, a second",
      "a core of PostgreSQL, a second",
      "machines that one core of PostgreSQL serves",
    ],
    KINDS.map((kind) => {
      const [machine, database] = [ofMachine(costs[kind]), perSecondOfCores(costs[kind].cpuMs.postgres, 1)];
      return [kind, whole(machine), whole(database), (database / machine).toFixed(1)];
    }),
  );

const RUNS_A_DAY = 10_000_000;
/** Each account reads ten pages and writes once a week. */
const READS_A_DAY = 10_000_000;
const WRITES_A_DAY = 1_000_000 / 7;
const GAS_A_WRITE = 65_000;
const BLOCK_GAS_A_SECOND = 15_000_000;
const RECORD_DAYS = 90;

function largeTable({ run, write, read }: Costs): string {
  const perDay: readonly (readonly [string, number, Cost])[] = [
    ["runs", RUNS_A_DAY, run],
    ["reads", READS_A_DAY, read],
    ["writes", WRITES_A_DAY, write],
  ];
  const peak = (count: number): number => (count * PEAK) / DAY_SECONDS;
  const machines = perDay.reduce((sum, [, count, cost]) => sum + peak(count) / ofMachine(cost), 0);
  const cores = perDay.reduce(
    (sum, [, count, cost]) => sum + peak(count) / perSecondOfCores(cost.cpuMs.postgres, 1),
    0,
  );
  const calls = perDay.reduce((sum, [, count, cost]) => sum + (count * cost.rpcCalls) / DAY_SECONDS, 0);
  const gasASecond = (WRITES_A_DAY * GAS_A_WRITE) / DAY_SECONDS;
  return table(
    ["What", "Needed"],
    [
      [
        "requests a second, mean and busiest",
        perDay.map(([name, count]) => `${whole(count / DAY_SECONDS)} and ${whole(peak(count))} ${name}`).join("; "),
      ],
      ["machines of four cores in the busiest second", `${Math.ceil(machines)}, and one more that may be lost`],
      ["cores of PostgreSQL in the busiest second", String(Math.ceil(cores))],
      [
        "rows of runs and ledger a day",
        `${whole(2 * RUNS_A_DAY)}; ${whole(RUNS_A_DAY * RECORD_DAYS)} records of runs after ${RECORD_DAYS} days`,
      ],
      [
        "disk a day, and records of ninety days",
        `${inGiB(RUNS_A_DAY * run.diskBytes + WRITES_A_DAY * write.diskBytes)}, ` +
          `${inGiB(RUNS_A_DAY * run.diskBytes * RECORD_DAYS)}`,
      ],
      ["log a day (archive, standby)", inGiB(perDay.reduce((sum, [, count, cost]) => sum + count * cost.walBytes, 0))],
      [
        "RPC calls a second, mean and busiest",
        `${whole(calls)} and ${whole(calls * PEAK)}: an own node beside the machines, not a metered endpoint`,
      ],
      [
        "gas of writes",
        `${whole(gasASecond)} a second at ${whole(GAS_A_WRITE)} a write, ` +
          `${((100 * gasASecond) / BLOCK_GAS_A_SECOND).toFixed(2)} % of a chain of ${whole(BLOCK_GAS_A_SECOND)} ` +
          "gas a second",
      ],
      ["gas of registering a million accounts once", `${whole((1_000_000 * 152_000) / 1e9)} billion`],
    ],
  );
}
