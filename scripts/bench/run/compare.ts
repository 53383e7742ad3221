/**
 * Compares this checkout with a baseline: the same callers on both, in short alternating rounds, so that temporary load
 * affects both.
 */
import type { Baseline } from "./baseline";
import { cpuOf, perRun, type CpuTimes } from "./cpu";
import { WARM_UP, measureHttp, measureThroughput, type Target } from "./http";

const ROUNDS = 10;
const RUNS_PER_ROUND = 60;
const THROUGHPUT_MS = 1_500;
const CALLERS = 8;

export interface Side {
  /** Milliseconds of each hello of one caller. */
  readonly hello: number[];
  /** Of many callers without pauses, per round. */
  readonly runsPerSecond: number[];
}

export interface Comparison {
  readonly current: Side;
  readonly baseline: Side;
}

export async function compare(current: Target, baseline: Baseline): Promise<Comparison> {
  const sides = [
    { target: current, side: { hello: [], runsPerSecond: [] } as Side },
    { target: baseline as Target, side: { hello: [], runsPerSecond: [] } as Side },
  ] as const;
  for (const { target } of sides) await measureHttp(target, "hello", WARM_UP);
  for (let round = 0; round < ROUNDS; round++) {
    for (const { target, side } of round % 2 === 0 ? sides : [...sides].reverse()) {
      side.hello.push(...(await measureHttp(target, "hello", RUNS_PER_ROUND)).map(({ ms }) => ms));
      side.runsPerSecond.push((await measureThroughput(target, CALLERS, false, THROUGHPUT_MS)).runsPerSecond);
    }
  }
  return { current: sides[0].side, baseline: sides[1].side };
}

export interface CpuRow {
  readonly who: string;
  readonly callers: number;
  /** Milliseconds of CPU per run. */
  readonly cpuMs: CpuTimes;
}

/** CPU time of a hello in each process, for one caller and for many. */
export async function measureCpu(who: string, target: Target): Promise<CpuRow[]> {
  const rows: CpuRow[] = [];
  for (const callers of [1, CALLERS]) {
    const before = cpuOf(target.root);
    const { latencies } = await measureThroughput(target, callers, false, 2 * THROUGHPUT_MS);
    rows.push({ who, callers, cpuMs: perRun(before, cpuOf(target.root), latencies.length + callers) });
  }
  return rows;
}
