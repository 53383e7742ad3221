/**
 * `npm run bench:run`: latency of an action, from a bare isolate to a paid request over HTTP, on one machine. Starts
 * its own stack. Prints tables, writes bench/run.json, and exits with 1 when a bar is missed.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { createLocalRunner } from "../action/localRun";
import { RAISED_LIMITS } from "./client";
import { measureFloor } from "./run/floor";
import {
  HELLO,
  SIGN,
  measureExecutor,
  measureHttp,
  measureThroughput,
  LEAD_IN,
  WARM_UP,
  startBed,
  type Bed,
  type Throughput,
} from "./run/http";
import { measureOps } from "./run/ops";
import { measureSpends, type SpendFigures } from "./run/spends";
import { median, p99, rounded } from "./statistics";

interface Contender {
  name: string;
  hello: number[];
  sign: number[];
}

const RUNS = 1_000;
const OP_RUNS = 200;
/** Of one caller without pauses, for its slowest hundredth. */
const ALONE_RUNS = 3_000;
/** The floor and the stack alternate in rounds, so that temporary load on the machine affects both. */
const ROUNDS = 10;
const THROUGHPUT_MS = 4_000;
const BARS = {
  helloOverFloor: 2.5,
  signOverHello: 1.3,
  p99OverMedian: 2.5,
  runsPerSecond: 150,
  opOverSignMessage: 1.5,
  spendMs: 0.2,
};

/** The same signature made by a library inside the sandbox. */
const SIGN_IN_GUEST = `async function main({ secret, message }) {
  return new ethers.Wallet(secret).signMessage(message);
}`;
const SECRET = `0x${"11".repeat(32)}`;

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
      { name: "(b) the sandbox", hello, sign },
      { name: "    the same, ethers signs in the guest", hello: [], sign: inGuest },
    ];
  } finally {
    await runner.close();
  }
}

interface HttpFigures {
  floor: Contender;
  contender: Contender;
  alone: Contender;
  executor: Contender;
  executionMs: number;
  throughput: Throughput[];
}

async function measureStack(bed: Bed): Promise<HttpFigures> {
  for (const task of ["hello", "sign"] as const) await measureHttp(bed, task, WARM_UP);
  const floor: Contender = { name: "(a) bare isolate, fresh each time", hello: [], sign: [] };
  const contender: Contender = { name: "(c) over HTTP, authorised and billed", hello: [], sign: [] };
  const series = await measureHttp(bed, "hello", ALONE_RUNS);
  const alone: Contender = { name: "    the same without pauses", hello: series.map(({ ms }) => ms), sign: [] };
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
  for (const many of [false, true])
    for (const callers of [1, 8, 32]) throughput.push(await measureThroughput(bed, callers, many, THROUGHPUT_MS));
  return { floor, contender, alone, executor, executionMs: median(executions), throughput };
}

interface Row {
  name: string;
  hello?: { median: number; p99: number; n: number };
  sign?: { median: number; p99: number; n: number };
}

const figures = (samples: readonly number[]) =>
  samples.length > 0 ? { median: median(samples), p99: p99(samples), n: samples.length } : undefined;

function rowOf({ name, hello, sign }: Contender): Row {
  const [helloFigures, signFigures] = [figures(hello), figures(sign)];
  return { name: name.trim(), ...(helloFigures && { hello: helloFigures }), ...(signFigures && { sign: signFigures }) };
}

function printTimes(rows: readonly Contender[], floor: Contender): void {
  const cell = (samples: readonly number[], base: number): string =>
    samples.length === 0
      ? "".padEnd(34)
      : [
          median(samples).toFixed(2).padStart(8),
          p99(samples).toFixed(2).padStart(8),
          `${(median(samples) / base).toFixed(1)}×`.padStart(7),
        ]
          .join(" ")
          .padEnd(34);
  console.log(`\n${"ms".padEnd(44)}${"hello: median, p99, over floor".padEnd(34)}sign: median, p99, over floor`);
  for (const { name, hello, sign } of rows)
    console.log(`${name.padEnd(44)}${cell(hello, median(floor.hello))}${cell(sign, median(floor.sign))}`);
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

const atMost = (what: string, value: number, most: number): Bar => ({
  what,
  value,
  bar: `≤ ${most}`,
  holds: value <= most,
});
const atLeast = (what: string, value: number, least: number): Bar => ({
  what,
  value,
  bar: `≥ ${least}`,
  holds: value >= least,
});

function barsOf({ floor, contender, alone, throughput }: HttpFigures): Bar[] {
  const overFloor = rounded(median(contender.hello) / median(floor.hello));
  const signOverHello = rounded(median(contender.sign) / median(contender.hello));
  const tail = rounded(p99(alone.hello) / median(alone.hello));
  const perSecond = throughput.find(({ callers, accounts }) => callers === 8 && accounts === 1)?.runsPerSecond ?? 0;
  return [
    atMost("hello over HTTP / bare floor", overFloor, BARS.helloOverFloor),
    atMost("sign / hello over HTTP", signOverHello, BARS.signOverHello),
    atMost("hello over HTTP, one caller without pauses, p99 / median", tail, BARS.p99OverMedian),
    atLeast("hello runs a second, 8 callers, one account", perSecond, BARS.runsPerSecond),
  ];
}

function printThroughput(
  rows: readonly { callers: number; accounts: number; runsPerSecond: number; medianMs: number; p99Ms: number }[],
): void {
  console.log("\nhello over HTTP, callers that never pause");
  for (const { callers, accounts, runsPerSecond, medianMs, p99Ms } of rows) {
    const who = `${String(callers).padStart(3)} callers, ${accounts} account${accounts === 1 ? " " : "s"}`;
    console.log(`${who}  ${String(runsPerSecond).padStart(5)} runs/s   median ${medianMs} ms, p99 ${p99Ms} ms`);
  }
}

/** Whole runs with one operation each, relative to a run with signMessage. */
function opRows(samples: Record<string, number[]>): { op: string; medianMs: number; overSignMessage: number }[] {
  const base = median(samples["signMessage"] ?? []);
  return Object.entries(samples).map(([op, times]) => ({
    op,
    medianMs: median(times),
    overSignMessage: rounded(median(times) / base),
  }));
}

const opBar = (rows: ReturnType<typeof opRows>): Bar =>
  atMost(
    "a run with the slowest operation / one with signMessage",
    Math.max(...rows.map(({ overSignMessage }) => overSignMessage)),
    BARS.opOverSignMessage,
  );

function spendBar({ signMs, spendAndSignMs, addedMs }: SpendFigures): Bar {
  const ratio = rounded(spendAndSignMs / signMs);
  const what = `ms that a spend within a slice adds to a signature of ${signMs} ms (${ratio}×)`;
  return atMost(what, addedMs, BARS.spendMs);
}

async function main(): Promise<void> {
  console.log(
    `node ${process.version}, ${availableParallelism()} cores; the stack runs with ${Object.entries(RAISED_LIMITS)
      .map((pair) => pair.join("="))
      .join(" ")}`,
  );
  const sandbox = await measureSandbox();
  const ops = opRows(await measureOps(OP_RUNS));
  const bed = await startBed();
  const measured = async () => ({ stack: await measureStack(bed), spends: await measureSpends(bed) });
  const results = { sandbox, ops, ...(await measured().finally(() => bed.close())) };
  const bars = print(results);
  writeFileSync(join("bench", "run.json"), `${JSON.stringify(reportOf(results, bars), null, 2)}\n`);
  if (bars.some(({ holds }) => !holds)) process.exitCode = 1;
}

interface Results {
  readonly sandbox: Awaited<ReturnType<typeof measureSandbox>>;
  readonly ops: ReturnType<typeof opRows>;
  readonly stack: Awaited<ReturnType<typeof measureStack>>;
  readonly spends: SpendFigures;
}

const contendersOf = ({ sandbox, stack }: Results) => [
  stack.floor,
  ...sandbox,
  stack.executor,
  stack.contender,
  stack.alone,
];

const throughputOf = ({ stack }: Results) =>
  stack.throughput.map(({ latencies, ...row }) => ({ ...row, medianMs: median(latencies), p99Ms: p99(latencies) }));

function print(results: Results): ReturnType<typeof barsOf> {
  const { stack, ops, spends } = results;
  printTimes(contendersOf(results), stack.floor);
  printThroughput(throughputOf(results));
  console.log("\nwhere the time of one hello over HTTP goes (medians)");
  for (const [part, ms] of breakdown(stack)) console.log(`${ms.toFixed(2).padStart(8)} ms  ${part}`);
  console.log("\na run in the sandbox with one operation");
  for (const { op, medianMs, overSignMessage } of ops)
    console.log(`${medianMs.toFixed(2).padStart(8)} ms  ${overSignMessage.toFixed(2)}×  ${op}`);
  const bars = [...barsOf(stack), opBar(ops), spendBar(spends)];
  console.log("");
  for (const { what, value, bar, holds } of bars) console.log(`${holds ? "✓" : "✗"} ${what}: ${value} (bar: ${bar})`);
  return bars;
}

function reportOf(results: Results, bars: ReturnType<typeof barsOf>): object {
  const { stack, ops, spends } = results;
  return {
    node: process.version,
    cpus: availableParallelism(),
    settings: RAISED_LIMITS,
    times: contendersOf(results).map(rowOf),
    ops,
    spends,
    throughput: throughputOf(results),
    breakdownMs: Object.fromEntries(breakdown(stack)),
    bars,
  };
}

void main();
