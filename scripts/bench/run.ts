/**
 * `npm run bench:run`: how fast an action runs, from a bare isolate to a paid request over HTTP, in one run on one machine; beside it what others need.
 * Starts its own stack. Prints tables, writes bench/run.json, and ends with 1 when a bar is missed.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { createLocalRunner } from "../action/localRun";
import { HELLO, SIGN, SIGN_IN_GUEST, SECRET } from "./run/codes";
import { measureFloor } from "./run/floor";
import { measureExecutor, measureHttp, measureThroughput, LEAD_IN, STACK_SETTINGS, startBed, type Bed, type Throughput } from "./run/http";
import { measureOps } from "./run/ops";
import { installOthers, measureDeno, measureWorkerd, type Contender } from "./run/others";
import { rounded } from "./statistics";

const RUNS = 200;
/** The floor and the stack are measured in turns, so that a machine that is slow for a while is slow for both. */
const ROUNDS = 5;
/** Runs before the first round: a service is measured as it runs, not as it starts. */
const WARM_UP = 1_000;
const THROUGHPUT_MS = 4_000;
const BARS = { helloOverFloor: 5, signOverHello: 1.5, runsPerSecond: 150, opOverSignMessage: 1.5 };

const at = (samples: readonly number[], share: number): number => {
  const sorted = [...samples].sort((a, b) => a - b);
  return rounded(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN);
};
const median = (samples: readonly number[]): number => at(samples, 0.5);
const p99 = (samples: readonly number[]): number => at(samples, 0.99);

/** (b): the sandbox with real ops, no chain, no HTTP. */
async function measureSandbox(): Promise<Contender[]> {
  const runner = await createLocalRunner();
  const times = async (code: string, params: Record<string, unknown>): Promise<number[]> => {
    const samples: number[] = [];
    for (let i = 0; i < RUNS + LEAD_IN; i++) {
      const start = performance.now();
      const { error } = await runner.run(code, params);
      if (error) throw new Error(`a run failed: ${error.message}`);
      if (i >= LEAD_IN) samples.push(performance.now() - start);
    }
    return samples;
  };
  try {
    const hello = await times(HELLO, { name: "bench" });
    const sign = await times(SIGN, { message: "m" });
    const inGuest = await times(SIGN_IN_GUEST, { secret: SECRET, message: "m" });
    return [
      { name: "(b) our sandbox", hello, sign },
      { name: "    the same, ethers signs in the guest", hello: [], sign: inGuest },
    ];
  } finally {
    await runner.close();
  }
}

interface HttpFigures {
  floor: Contender;
  contender: Contender;
  executor: Contender;
  executionMs: number;
  throughput: Throughput[];
}

async function measureStack(bed: Bed): Promise<HttpFigures> {
  for (const task of ["hello", "sign"] as const) await measureHttp(bed, task, WARM_UP);
  const floor: Contender = { name: "(a) bare isolate, fresh each time", hello: [], sign: [] };
  const contender: Contender = { name: "(c) over HTTP, authorised and billed", hello: [], sign: [] };
  const executor: Contender = { name: "    the executor on its socket", hello: [], sign: [] };
  const executions: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const bare = measureFloor(RUNS / ROUNDS, LEAD_IN);
    for (const task of ["hello", "sign"] as const) {
      const runs = await measureHttp(bed, task, RUNS / ROUNDS);
      floor[task].push(...bare[task]);
      contender[task].push(...runs.map(({ ms }) => ms));
      executor[task].push(...(await measureExecutor(bed, task, RUNS / ROUNDS)));
      if (task === "hello") executions.push(...runs.map(({ executionMs }) => executionMs));
    }
  }
  const throughput: Throughput[] = [];
  for (const many of [false, true]) for (const callers of [1, 8, 32]) throughput.push(await measureThroughput(bed, callers, many, THROUGHPUT_MS));
  return { floor, contender, executor, executionMs: median(executions), throughput };
}

async function measureOthers(): Promise<{ contenders: Contender[]; problems: string[] }> {
  const folder = mkdtempSync(join(tmpdir(), "bench-others-"));
  const problems: string[] = [];
  const contenders: Contender[] = [];
  try {
    const problem = installOthers(folder);
    if (problem) return { contenders, problems: [problem] };
    for (const measure of [measureWorkerd, measureDeno]) {
      await measure(folder).then(
        (measured) => contenders.push(...[measured].flat()),
        (error: unknown) => problems.push(error instanceof Error ? error.message : String(error)),
      );
    }
    return { contenders, problems };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Row {
  name: string;
  hello?: { median: number; p99: number; n: number };
  sign?: { median: number; p99: number; n: number };
}

const figures = (samples: readonly number[]) => (samples.length > 0 ? { median: median(samples), p99: p99(samples), n: samples.length } : undefined);

function rowOf({ name, hello, sign }: Contender): Row {
  const [helloFigures, signFigures] = [figures(hello), figures(sign)];
  return { name: name.trim(), ...(helloFigures && { hello: helloFigures }), ...(signFigures && { sign: signFigures }) };
}

function printTimes(rows: readonly Contender[], floor: Contender): void {
  const cell = (samples: readonly number[], base: number): string =>
    samples.length === 0
      ? "".padEnd(34)
      : `${median(samples).toFixed(2).padStart(8)} ${p99(samples).toFixed(2).padStart(8)} ${`${(median(samples) / base).toFixed(1)}×`.padStart(7)}`.padEnd(34);
  console.log(`\n${"ms".padEnd(44)}${"hello: median, p99, over floor".padEnd(34)}sign: median, p99, over floor`);
  for (const { name, hello, sign } of rows) console.log(`${name.padEnd(44)}${cell(hello, median(floor.hello))}${cell(sign, median(floor.sign))}`);
}

function breakdown({ floor, contender, executor, executionMs }: HttpFigures): [part: string, ms: number][] {
  const [http, direct, bare] = [median(contender.hello), median(executor.hello), median(floor.hello)];
  return [
    ["relayer: HTTP, checks, permission, credit", http - direct],
    ["keyholder: socket, key, CID, the contract's answer", direct - executionMs],
    ["sandbox: channel, prelude and globals", executionMs - bare],
    ["the bare isolate", bare],
  ].map(([part, ms]) => [part as string, rounded(ms as number)]);
}

interface Bar {
  what: string;
  value: number;
  bar: string;
  holds: boolean;
}

function barsOf({ floor, contender, throughput }: HttpFigures): Bar[] {
  const overFloor = rounded(median(contender.hello) / median(floor.hello));
  const signOverHello = rounded(median(contender.sign) / median(contender.hello));
  const perSecond = throughput.find(({ callers, accounts }) => callers === 8 && accounts === 1)?.runsPerSecond ?? 0;
  return [
    { what: "hello over HTTP / bare floor", value: overFloor, bar: `≤ ${BARS.helloOverFloor}`, holds: overFloor <= BARS.helloOverFloor },
    { what: "sign / hello over HTTP", value: signOverHello, bar: `≤ ${BARS.signOverHello}`, holds: signOverHello <= BARS.signOverHello },
    { what: "hello runs a second, 8 callers, one account", value: perSecond, bar: `≥ ${BARS.runsPerSecond}`, holds: perSecond >= BARS.runsPerSecond },
  ];
}

/** Whole runs with one operation each, over a run with signMessage. */
function opRows(samples: Record<string, number[]>): { op: string; medianMs: number; overSignMessage: number }[] {
  const base = median(samples["signMessage"] ?? []);
  return Object.entries(samples).map(([op, times]) => ({ op, medianMs: median(times), overSignMessage: rounded(median(times) / base) }));
}

function opBar(rows: ReturnType<typeof opRows>): Bar {
  const value = Math.max(...rows.map(({ overSignMessage }) => overSignMessage));
  const most = BARS.opOverSignMessage;
  return { what: "a run with the slowest operation / one with signMessage", value, bar: `≤ ${most}`, holds: value <= most };
}

async function main(): Promise<void> {
  console.log(
    `node ${process.version}, ${availableParallelism()} cores; the stack runs with ${Object.entries(STACK_SETTINGS)
      .map((pair) => pair.join("="))
      .join(" ")}`,
  );
  const sandbox = await measureSandbox();
  const ops = opRows(await measureOps(RUNS));
  const bed = await startBed();
  const stack = await measureStack(bed).finally(() => bed.close());
  const others = process.argv.includes("--without-others") ? { contenders: [], problems: ["workerd and deno were left out"] } : await measureOthers();

  const contenders = [stack.floor, ...sandbox, stack.executor, stack.contender, ...others.contenders.map((other) => ({ ...other, name: `(d) ${other.name}` }))];
  printTimes(contenders, stack.floor);
  for (const problem of others.problems) console.log(problem);
  const throughput = stack.throughput.map(({ latencies, ...row }) => ({ ...row, medianMs: median(latencies), p99Ms: p99(latencies) }));
  console.log("\nhello over HTTP, callers that never pause");
  for (const row of throughput) {
    console.log(
      `${String(row.callers).padStart(3)} callers, ${row.accounts} account${row.accounts === 1 ? " " : "s"}  ${String(row.runsPerSecond).padStart(5)} runs/s   median ${row.medianMs} ms, p99 ${row.p99Ms} ms`,
    );
  }
  const parts = breakdown(stack);
  console.log("\nwhere the time of one hello over HTTP goes (medians)");
  for (const [part, ms] of parts) console.log(`${ms.toFixed(2).padStart(8)} ms  ${part}`);
  console.log("\na run in the sandbox with one operation");
  for (const { op, medianMs, overSignMessage } of ops) console.log(`${medianMs.toFixed(2).padStart(8)} ms  ${overSignMessage.toFixed(2)}×  ${op}`);
  const bars = [...barsOf(stack), opBar(ops)];
  console.log("");
  for (const { what, value, bar, holds } of bars) console.log(`${holds ? "✓" : "✗"} ${what}: ${value} (bar: ${bar})`);

  const report = {
    node: process.version,
    cpus: availableParallelism(),
    settings: STACK_SETTINGS,
    times: contenders.map(rowOf),
    ops,
    throughput,
    breakdownMs: Object.fromEntries(parts),
    bars,
  };
  writeFileSync(join("bench", "run.json"), `${JSON.stringify(report, null, 2)}\n`);
  if (bars.some(({ holds }) => !holds)) process.exitCode = 1;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
