/**
 * `npm run bench:abuse`: how hostile actions affect another account. Starts its own stack; one account runs each attack
 * continuously while another runs hello and fetch actions. Prints a table, writes bench/abuse.json, and exits with 1
 * when a bar is missed. `--seconds n` sets the duration of each attack.
 */
import { createSocket } from "node:dgram";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { callExecutor } from "../dev/payers";
import { startStack, type Stack } from "../dev/stack";
import { attacks, type AbuseAttack } from "./abuse/attacks";
import { AbuseCaller, setUpAccount, type AbuseAccount, type RunEnd } from "./abuse/callers";
import { HELLO } from "./run/codes";
import { rounded } from "./statistics";

const MIB = 2 ** 20;
const SECONDS = secondsOf(process.argv);
/** Accounts that may attack together, and the callers of all of them. */
const ATTACKERS = 2;
const CALLERS = 8;
/** Time limit of each attacking run: long enough to do damage, short enough to end before the next attack begins. */
const ATTACK_MS = 5_000;
const PAUSE_MS = 10;
const WARM_UP = 200;
/** One account gets half of the slots, so half of its callers wait for the other half. */
const BARS = { slowdown: 5, heldMs: 50, endsWithinMs: 3 * ATTACK_MS };
const EXPECTED_REFUSALS = new Set([429]);

interface Bed {
  readonly stack: Stack;
  readonly attacks: readonly AbuseAttack[];
  readonly attackers: readonly AbuseAccount[];
  readonly honest: AbuseAccount;
  readonly fetchCode: string;
  close(): Promise<void>;
}

async function startBed(): Promise<Bed> {
  const nameServer = createSocket("udp4");
  await new Promise<void>((resolve) => nameServer.bind(0, "127.0.0.1", resolve));
  const large = Buffer.alloc(10 * MIB);
  const sink = createServer((request, response) => {
    request.resume().on("end", () => response.end(request.url === "/small" ? "small" : large));
  });
  await new Promise<void>((resolve) => sink.listen(0, "127.0.0.1", resolve));
  const at = `localhost:${(sink.address() as AddressInfo).port}`;
  const fetchCode = `async function main() { return (await fetch("http://${at}/small")).text(); }`;
  const stack = await startStack({
    env: {
      SIGNUP_CREDIT_CENTS: "1000000",
      RATE_LIMIT_KEY_PER_SECOND: "1000000",
      RATE_LIMIT_MINTS_PER_MINUTE: "1000000",
      DNS_SERVERS: `127.0.0.1:${nameServer.address().port}`,
      FETCH_ALLOW_HOSTS: at,
    },
  });
  const all = attacks({ sinkUrl: `http://${at}/` });
  const attackers = [];
  for (let i = 0; i < ATTACKERS; i++)
    attackers.push(
      await setUpAccount(
        stack.baseUrl,
        all.map(({ code }) => code),
      ),
    );
  const honest = await setUpAccount(stack.baseUrl, [HELLO, fetchCode]);
  const close = async (): Promise<void> => {
    await stack.stop();
    sink.closeAllConnections();
    sink.close();
    nameServer.close();
  };
  return { stack, attacks: all, attackers, honest, fetchCode, close };
}

interface Neighbour {
  readonly hellos: readonly number[];
  readonly fetches: readonly number[];
  readonly failed: readonly RunEnd[];
}

/** An honest account: runs hello with short pauses, and fetches now and then. */
async function neighbour({ stack, honest, fetchCode }: Bed, isOver: () => boolean): Promise<Neighbour> {
  const ends = { hellos: [] as RunEnd[], fetches: [] as RunEnd[] };
  const repeat = async (into: RunEnd[], code: string, pauseMs: number): Promise<void> => {
    const caller = new AbuseCaller(stack.baseUrl, honest);
    while (!isOver()) {
      into.push(await caller.run(code, 60_000));
      await pause(pauseMs);
    }
    await caller.close();
  };
  await Promise.all([repeat(ends.hellos, HELLO, PAUSE_MS), repeat(ends.fetches, fetchCode, 20 * PAUSE_MS)]);
  const failed = [...ends.hellos, ...ends.fetches].filter(({ status, end }) => status !== 200 || end !== "none");
  return { hellos: ends.hellos.map(({ ms }) => ms), fetches: ends.fetches.map(({ ms }) => ms), failed };
}

async function attackWith(
  { stack, attackers }: Bed,
  { code, accounts = 1 }: AbuseAttack,
  isOver: () => boolean,
): Promise<RunEnd[]> {
  const ends: RunEnd[] = [];
  const attackCallers = attackers
    .slice(0, accounts)
    .flatMap((account) => Array.from({ length: CALLERS / accounts }, () => new AbuseCaller(stack.baseUrl, account)));
  await Promise.all(
    attackCallers.map(async (caller) => {
      while (!isOver()) {
        const end = await caller.run(code, ATTACK_MS);
        ends.push(end);
        if (end.status !== 200) await pause(10 * PAUSE_MS);
      }
      await caller.close();
    }),
  );
  return ends;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function loopOf({ stack }: Bed, seconds: number): Promise<{ heldMs: number; computedMs: number }> {
  const { heldMs, computedMs } = (await callExecutor(stack.executorSocket, "info", {})).loop;
  return { heldMs: Math.max(0, ...heldMs.slice(-seconds)), computedMs: Math.max(0, ...computedMs.slice(-seconds)) };
}

interface Row {
  readonly attack: string;
  readonly hello: { readonly n: number; readonly median: number; readonly p99: number };
  readonly fetchP99: number;
  readonly honestFailed: number;
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

async function measure(bed: Bed, attack: AbuseAttack | undefined, quietP99: number): Promise<Row> {
  const startedAt = performance.now();
  const isOver = (): boolean => performance.now() - startedAt > SECONDS * 1_000;
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
    hello: { n: honest.hellos.length, median: at(honest.hellos, 0.5), p99: at(honest.hellos, 0.99) },
    fetchP99: at(honest.fetches, 0.99),
    honestFailed: honest.failed.length,
    ...loop,
    attackerRuns: ran.length,
    ends: counted(ran.map(({ end }) => end)),
    attackerCents: ran.reduce((sum, { costCents }) => sum + costCents, 0),
    unpaid: ran.filter(({ costCents }) => costCents === 0).length,
    slowestMs: Math.round(Math.max(0, ...ran.map(({ ms }) => ms))),
  };
  return { ...figures, problems: problemsOf(figures, attack, quietP99) };
}

function problemsOf(row: Omit<Row, "problems">, attack: AbuseAttack | undefined, quietP99: number): string[] {
  const unexpected = Object.keys(row.ends).filter((end) => attack !== undefined && !attack.ends.includes(end));
  return [
    row.hello.p99 > BARS.slowdown * quietP99
      ? `hello's p99 is ${rounded(row.hello.p99 / quietP99)} times the quiet one (bar: ${BARS.slowdown})`
      : "",
    row.heldMs >= BARS.heldMs ? `the loop was held for ${row.heldMs} ms (bar: below ${BARS.heldMs})` : "",
    row.honestFailed > 0 ? `${row.honestFailed} honest runs failed` : "",
    row.unpaid > 0 ? `${row.unpaid} attacking runs were free` : "",
    unexpected.length > 0 ? `attacking runs ended as ${unexpected.join(", ")}` : "",
    row.slowestMs > BARS.endsWithinMs ? `an attacking run took ${row.slowestMs} ms` : "",
  ].filter((problem) => problem !== "");
}

function at(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return rounded(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? NaN);
}

function counted(ends: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const end of ends) counts[end] = (counts[end] ?? 0) + 1;
  return counts;
}

function secondsOf(args: readonly string[]): number {
  const given = Number(args[args.indexOf("--seconds") + 1]);
  return args.includes("--seconds") && given > 0 ? given : 15;
}

function print({
  attack,
  hello,
  fetchP99,
  heldMs,
  computedMs,
  attackerRuns,
  attackerCents,
  ends,
  problems,
}: Row): void {
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

async function main(): Promise<void> {
  const bed = await startBed();
  const rows: Row[] = [];
  try {
    const warm = new AbuseCaller(bed.stack.baseUrl, bed.honest);
    for (let i = 0; i < WARM_UP; i++) await warm.run(i % 10 === 0 ? bed.fetchCode : HELLO, 60_000);
    await warm.close();
    const columns = ["hello med / p99 ms", "fetch p99 ms", "loop held / cpu ms", "attacking runs"];
    console.log(`${"".padEnd(58)}${columns.map((text) => text.padEnd(18)).join("")}their ends`);
    const quiet = await measure(bed, undefined, Infinity);
    rows.push(quiet);
    print(quiet);
    for (const attack of bed.attacks) {
      const row = await measure(bed, attack, quiet.hello.p99);
      rows.push(row);
      print(row);
    }
  } finally {
    await bed.close();
  }
  const report = {
    node: process.version,
    cpus: availableParallelism(),
    secondsEach: SECONDS,
    attackingCallers: CALLERS,
    bars: BARS,
    rows: rows.map((row) => ({ ...row, problems: row.problems.join("; ") })),
  };
  writeFileSync(join("bench", "abuse.json"), `${JSON.stringify(report, null, 2)}\n`);
  if (rows.some(({ problems }) => problems.length > 0)) process.exitCode = 1;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
