/** What an honest account notices of each crowd's attack, whether the crowd paid, and what is left of it afterwards. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { callExecutor } from "../../dev/payers";
import { median, quantile } from "../statistics";
import { MEMORY_LIMITS_MIB, type Bed } from "./bed";
import { Caller, type AbuseAccount, type RunEnd } from "./callers";
import type { CrowdAttack } from "./crowds";
import { ACTS, startHonest, type Ends } from "./honest";
import { MemoryWatch } from "../processes";

export const CROWD_BARS = {
  helloTimes: 20,
  helloMs: 1_000,
  signTimes: 6,
  fetchMs: 3_000,
  /** A run of code of 100 KiB. */
  largeMs: 3_000,
  /** Of the memory limit, that is never used. */
  memoryMargin: 0.1,
  /** Afterwards, against before. */
  afterTimes: 2,
} as const;

const TIMED = ["hello", "sign", "fetch", "large", "write", "chain"] as const;

type Figures = Readonly<
  Record<(typeof TIMED)[number], { readonly n: number; readonly median: number; readonly p90: number }>
>;

export interface CrowdRow {
  readonly attack: string;
  readonly accounts: number;
  readonly honest: Figures;
  readonly refused: Readonly<Record<string, number>>;
  readonly memoryMiB: Readonly<Record<keyof typeof MEMORY_LIMITS_MIB, number>>;
  readonly ends: Readonly<Record<string, number>>;
  readonly paidCents: number;
  readonly problems: readonly string[];
}

const figuresOf = (ends: Ends): Figures =>
  Object.fromEntries(
    TIMED.map((name) => {
      const answered = ends[name].filter(({ status }) => status !== 0);
      const times = answered.map(({ ms }) => ms);
      return [name, { n: times.length, median: median(times), p90: quantile(times, 0.9) }];
    }),
  ) as Figures;

/** By act and how it ended. */
function refusedOf(ends: Ends): Record<string, number> {
  const refused = ACTS.flatMap((name) =>
    ends[name]
      .filter(({ status, end }) => status !== 200 || end !== "none")
      .map(({ status, end }) => `${name}: ${status === 200 ? end : `${status} ${end}`}`),
  );
  return counted(refused);
}

export function counted(texts: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const text of texts) counts[text] = (counts[text] ?? 0) + 1;
  return counts;
}

const watchOf = ({ stack }: Bed): MemoryWatch<keyof typeof MEMORY_LIMITS_MIB> =>
  new MemoryWatch({
    executor: () => stack.service("executor").child.pid ?? 0,
    relayer: () => stack.service("relayer").child.pid ?? 0,
  });

/** Nobody attacks. */
export async function measureQuiet(bed: Bed, attack: string, seconds: number): Promise<CrowdRow> {
  const watch = watchOf(bed);
  const end = startHonest(bed);
  await sleep(seconds * 1_000);
  const ends = await end();
  const refused = refusedOf(ends);
  const problems = Object.keys(refused).length > 0 ? ["honest requests failed although nobody attacked"] : [];
  const row = {
    attack,
    accounts: 0,
    honest: figuresOf(ends),
    refused,
    memoryMiB: watch.stop(),
    ends: {},
    paidCents: 0,
  };
  return { ...row, problems };
}

export async function measureCrowd(
  bed: Bed,
  attack: CrowdAttack,
  accounts: number,
  seconds: number,
  quiet: CrowdRow,
): Promise<CrowdRow> {
  const crowd = bed.attackers.slice(0, accounts);
  const caller = new Caller(bed.stack.baseUrl, 4_096);
  const before = await creditOf(caller, crowd);
  const watch = watchOf(bed);
  const over = new AbortController();
  setTimeout(() => over.abort(), Math.max(seconds, attack.leastSeconds ?? 0) * 1_000);
  const { stack, attackersServers: servers } = bed;
  const parts = { caller, accounts: crowd, baseUrl: stack.baseUrl, servers, over: over.signal };
  const end = startHonest(bed);
  const [ends, honest] = await Promise.all([attack.attack(parts), once(over.signal, "abort").then(end)]);
  const memoryMiB = watch.stop();
  const paidCents = before - (await creditOf(caller, crowd));
  await caller.close();
  const named = ends.map(({ status, end }) => (status === 200 || status === 0 ? end : `${status} ${end}`));
  const figures = { honest: figuresOf(honest), refused: refusedOf(honest), memoryMiB, ends: counted(named), paidCents };
  const row = { attack: attack.name, accounts, ...figures };
  return { ...row, problems: problemsOf(row, attack, ends, quiet) };
}

async function creditOf(caller: Caller, accounts: readonly AbuseAccount[]): Promise<number> {
  const each = await Promise.all(accounts.map((account) => caller.credit(account)));
  return each.reduce((sum, cents) => sum + cents, 0);
}

function problemsOf(
  row: Omit<CrowdRow, "problems">,
  { isPaid, freeRuns = 0 }: CrowdAttack,
  ends: readonly RunEnd[],
  { honest: quiet }: CrowdRow,
): string[] {
  const { hello, sign, fetch, large } = row.honest;
  const { helloTimes, helloMs, signTimes, fetchMs, largeMs } = CROWD_BARS;
  const free = ends.filter(({ status, costCents, end }) => status === 200 && costCents === 0 && end !== "none");
  return [
    ...Object.entries(row.refused).map(([what, times]) => `the honest account: ${times} times ${what}`),
    ...atMost("hello's median", hello.median, Math.min(helloMs, helloTimes * quiet.hello.median)),
    ...atMost("sign's median", sign.median, signTimes * quiet.sign.median),
    ...atMost("a 1 MiB fetch's p90", fetch.p90, fetchMs),
    ...atMost("the p90 of code of 100 KiB", large.p90, largeMs),
    ...memoryProblems(row.memoryMiB),
    ...(isPaid && row.paidCents <= 0 ? ["the attack cost nothing"] : []),
    ...(isPaid && free.length > freeRuns ? [`${free.length} attacking runs were free: ${free[0]?.end}`] : []),
  ];
}

const atMost = (what: string, ms: number, bar: number): string[] =>
  ms <= bar ? [] : [`${what} is ${Math.round(ms)} ms (bar: ${Math.round(bar)})`];

const memoryProblems = (used: CrowdRow["memoryMiB"]): string[] =>
  (Object.keys(MEMORY_LIMITS_MIB) as (keyof typeof MEMORY_LIMITS_MIB)[]).flatMap((name) => {
    const most = Math.floor(MEMORY_LIMITS_MIB[name] * (1 - CROWD_BARS.memoryMargin));
    return used[name] <= most ? [] : [`the ${name} used ${used[name]} MiB (bar: ${most})`];
  });

/** What remains of all attacks: nothing. */
export async function measureAfter(bed: Bed, quiet: CrowdRow, seconds: number): Promise<CrowdRow> {
  const row = await measureQuiet(bed, "afterwards", seconds);
  const { pool } = await callExecutor(bed.stack.executorSocket, "info", {});
  // The development chain's blocks take longer the more the contract stores, which all these writes raised.
  const chainTimes = Math.max(1, row.honest.chain.median / quiet.honest.chain.median);
  const slower = (["hello", "sign", "fetch", "write"] as const).flatMap((name) => {
    const times = CROWD_BARS.afterTimes * (name === "write" ? chainTimes : 1);
    return atMost(`${name}'s median`, row.honest[name].median, times * quiet.honest[name].median);
  });
  const kept = Object.entries(pool.held).filter(([, amount]) => amount > 0);
  const problems = [
    ...row.problems,
    ...slower,
    ...memoryProblems(row.memoryMiB),
    ...(pool.queued > 0 ? [`${pool.queued} runs still wait`] : []),
    ...kept.map(([what, amount]) => `${amount} of ${what} are still held`),
  ];
  return { ...row, problems };
}

export function printCrowdRow({ attack, accounts, honest, memoryMiB, paidCents, ends, problems }: CrowdRow): void {
  const { hello, sign, fetch, large, write, chain } = honest;
  const ms = (value: number): string => String(Math.round(value)).padStart(6);
  console.log(
    `${problems.length === 0 ? "✓" : "✗"} ${`${attack}${accounts === 0 ? "" : `, by ${accounts}`}`.padEnd(66)}` +
      `hello${ms(hello.median)} sign${ms(sign.median)} fetch${ms(fetch.p90)} large${ms(large.p90)} ` +
      `write${ms(write.median)} (a bare transfer${ms(chain.median)}) ms  ` +
      `executor ${memoryMiB.executor}, relayer ${memoryMiB.relayer} MiB  ${paidCents} ct  ${JSON.stringify(ends)}`,
  );
  for (const problem of problems) console.log(`    ${problem}`);
}
