/** What each attack by one or two accounts does to another account, to the keyholder's loop, and what it costs. */
import { setTimeout as pause } from "node:timers/promises";
import { callExecutor } from "../../dev/payers";
import { HELLO } from "../run/http";
import { median, p99, rounded } from "../statistics";
import type { AbuseAttack } from "./attacks";
import type { Bed } from "./bed";
import { Caller, type RunEnd } from "./callers";
import { counted } from "./crowdRows";

/** The callers of all attacking accounts. */
const CALLERS = 8;
/** Time limit of each attacking run: long enough to do damage, short enough to end before the next attack begins. */
const ATTACK_MS = 5_000;
const PAUSE_MS = 10;
const WARM_UP = 200;
export const SINGLE_BARS = { slowdown: 5, heldMs: 50, endsWithinMs: 3 * ATTACK_MS };
const EXPECTED_REFUSALS = new Set([429]);

const fetchCode = (servers: string): string =>
  `async function main() { return (await fetch("http://${servers}/small")).text(); }`;

/** A service that has just started is slow. */
export async function warmUp({ stack, honest, servers }: Bed): Promise<void> {
  const caller = new Caller(stack.baseUrl, 1);
  for (let i = 0; i < WARM_UP; i++)
    await caller.run(honest, i % 10 === 0 ? fetchCode(servers) : HELLO, { timeoutMs: 60_000 });
  await caller.close();
}

interface Neighbour {
  readonly hellos: readonly number[];
  readonly fetches: readonly number[];
  readonly failed: readonly RunEnd[];
}

/** An honest account: runs hello with short pauses, and fetches now and then. */
async function neighbour({ stack, honest, servers }: Bed, isOver: () => boolean): Promise<Neighbour> {
  const ends = { hellos: [] as RunEnd[], fetches: [] as RunEnd[] };
  const repeat = async (into: RunEnd[], code: string, pauseMs: number): Promise<void> => {
    const caller = new Caller(stack.baseUrl, 1);
    while (!isOver()) {
      into.push(await caller.run(honest, code, { timeoutMs: 60_000 }));
      await pause(pauseMs);
    }
    await caller.close();
  };
  await Promise.all([repeat(ends.hellos, HELLO, PAUSE_MS), repeat(ends.fetches, fetchCode(servers), 20 * PAUSE_MS)]);
  const failed = [...ends.hellos, ...ends.fetches].filter(({ status, end }) => status !== 200 || end !== "none");
  return { hellos: ends.hellos.map(({ ms }) => ms), fetches: ends.fetches.map(({ ms }) => ms), failed };
}

async function attackWith(
  { stack, attackers }: Bed,
  { code, accounts = 1 }: AbuseAttack,
  isOver: () => boolean,
): Promise<RunEnd[]> {
  const ends: RunEnd[] = [];
  const caller = new Caller(stack.baseUrl, CALLERS);
  const attacking = attackers
    .slice(0, accounts)
    .flatMap((account) => Array.from({ length: CALLERS / accounts }, () => account));
  await Promise.all(
    attacking.map(async (account) => {
      while (!isOver()) {
        const end = await caller.run(account, code, { timeoutMs: ATTACK_MS });
        ends.push(end);
        if (end.status !== 200) await pause(10 * PAUSE_MS);
      }
    }),
  );
  await caller.close();
  return ends;
}

async function loopOf({ stack }: Bed, seconds: number): Promise<{ heldMs: number; computedMs: number }> {
  const { heldMs, computedMs } = (await callExecutor(stack.executorSocket, "info", {})).loop;
  return { heldMs: Math.max(0, ...heldMs.slice(-seconds)), computedMs: Math.max(0, ...computedMs.slice(-seconds)) };
}

export interface SingleRow {
  readonly attack: string;
  readonly hello: { readonly n: number; readonly median: number; readonly p99: number };
  readonly fetchP99: number;
  /** How many of its runs ended how else than well. */
  readonly honestFailed: Readonly<Record<string, number>>;
  /** The longest the keyholder's event loop was blocked, and its computing time then. */
  readonly heldMs: number;
  readonly computedMs: number;
  readonly attackerRuns: number;
  readonly ends: Readonly<Record<string, number>>;
  readonly attackerCents: number;
  readonly unpaid: number;
  readonly slowestMs: number;
  readonly problems: readonly string[];
}

export async function measureSingle(
  bed: Bed,
  attack: AbuseAttack | undefined,
  seconds: number,
  quietP99: number,
): Promise<SingleRow> {
  const startedAt = performance.now();
  const isOver = (): boolean => performance.now() - startedAt > seconds * 1_000;
  const [honest, attacking] = await Promise.all([
    neighbour(bed, isOver),
    attack === undefined ? [] : attackWith(bed, attack, isOver),
  ]);
  // The list includes a second only once it is over.
  await pause(1_100);
  const loop = await loopOf(bed, Math.ceil((performance.now() - startedAt) / 1_000));
  const ran = attacking.filter(({ status }) => !EXPECTED_REFUSALS.has(status));
  const figures = {
    attack: attack?.name ?? "none",
    hello: { n: honest.hellos.length, median: median(honest.hellos), p99: p99(honest.hellos) },
    fetchP99: p99(honest.fetches),
    honestFailed: counted(honest.failed.map(({ status, end }) => `${status} ${end}`)),
    ...loop,
    attackerRuns: ran.length,
    ends: counted(ran.map(({ end }) => end)),
    attackerCents: ran.reduce((sum, { costCents }) => sum + costCents, 0),
    unpaid: ran.filter(({ costCents }) => costCents === 0).length,
    slowestMs: Math.round(Math.max(0, ...ran.map(({ ms }) => ms))),
  };
  return { ...figures, problems: problemsOf(figures, attack, quietP99) };
}

function problemsOf(row: Omit<SingleRow, "problems">, attack: AbuseAttack | undefined, quietP99: number): string[] {
  const unexpected = Object.keys(row.ends).filter(
    (end) => attack !== undefined && end !== "preempted" && !attack.ends.includes(end),
  );
  return [
    row.hello.p99 > SINGLE_BARS.slowdown * quietP99
      ? `hello's p99 is ${rounded(row.hello.p99 / quietP99)} times the quiet one (bar: ${SINGLE_BARS.slowdown})`
      : "",
    row.heldMs >= SINGLE_BARS.heldMs ? `the loop was held for ${row.heldMs} ms (bar: below ${SINGLE_BARS.heldMs})` : "",
    ...Object.entries(row.honestFailed).map(([end, runs]) => `${runs} honest runs ended as ${end}`),
    row.unpaid > 0 ? `${row.unpaid} attacking runs were free` : "",
    unexpected.length > 0 ? `attacking runs ended as ${unexpected.join(", ")}` : "",
    row.slowestMs > SINGLE_BARS.endsWithinMs ? `an attacking run took ${row.slowestMs} ms` : "",
  ].filter((problem) => problem !== "");
}

export function printSingleRow({
  attack,
  hello,
  fetchP99,
  heldMs,
  computedMs,
  attackerRuns,
  attackerCents,
  ends,
  problems,
}: SingleRow): void {
  const columns = [
    `${hello.median.toFixed(1)} / ${hello.p99.toFixed(1)}`,
    fetchP99.toFixed(1),
    `${heldMs} / ${computedMs}`,
    `${attackerRuns} for ${attackerCents} ct`,
  ];
  console.log(
    `${problems.length === 0 ? "✓" : "✗"} ` +
      `${attack.padEnd(56)}${columns.map((text) => text.padEnd(18)).join("")}${JSON.stringify(ends)}`,
  );
  for (const problem of problems) console.log(`    ${problem}`);
}
