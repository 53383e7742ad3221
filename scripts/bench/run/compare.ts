/**
 * Compares this checkout with a baseline: the same callers at both, in short alternating turns, so that temporary load
 * affects both.
 */
import type { Baseline } from "./baseline";
import { cpuOf, perRun, type CpuTimes } from "./cpu";
import { measureHttp, measureThroughput, type Target } from "./http";

const TURNS = 10;
const RUNS_A_TURN = 60;
const CROWD_MS = 1_500;
const CROWD = 8;
const WARM_UP = 300;

export interface Side {
  /** Milliseconds of each hello of one caller. */
  readonly hello: number[];
  /** Of many callers without pauses, per turn. */
  readonly runsPerSecond: number[];
}

export interface Comparison {
  readonly ours: Side;
  readonly theirs: Side;
}

export async function compare(ours: Target, theirs: Baseline): Promise<Comparison> {
  const sides = [
    { target: ours, side: { hello: [], runsPerSecond: [] } as Side },
    { target: theirs as Target, side: { hello: [], runsPerSecond: [] } as Side },
  ] as const;
  for (const { target } of sides) await measureHttp(target, "hello", WARM_UP);
  for (let turn = 0; turn < TURNS; turn++) {
    for (const { target, side } of turn % 2 === 0 ? sides : [...sides].reverse()) {
      side.hello.push(...(await measureHttp(target, "hello", RUNS_A_TURN)).map(({ ms }) => ms));
      side.runsPerSecond.push((await measureThroughput(target, CROWD, false, CROWD_MS)).runsPerSecond);
    }
  }
  return { ours: sides[0].side, theirs: sides[1].side };
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
  for (const callers of [1, CROWD]) {
    const before = cpuOf(target.root);
    const { latencies } = await measureThroughput(target, callers, false, 2 * CROWD_MS);
    rows.push({ who, callers, cpuMs: perRun(before, cpuOf(target.root), latencies.length + callers) });
  }
  return rows;
}
