/**
 * `npm run soak:runs -- --runs 50000`: many runs, a tenth of them hostile, on a stack of its own. Prints the memory of
 * keyholder, relayer and fetcher every 5,000 runs and writes bench/soak-runs.json. Exits with 1 when an honest run
 * failed, a process grew, or a child was left.
 */
import { writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Stack } from "../dev/stack";
import { Caller } from "./abuse/callers";
import { benchStack } from "./client";
import { isRunning, programsBelow, residentMiB } from "./processes";
import { HELLO } from "./run/http";

const [runs, every] = [numberAfter("--runs", 50_000), numberAfter("--every", 5_000)];
const CALLERS = 4;
const HOSTILE_SHARE = 10;
/** Allowed growth of a process in the second half: resident memory fluctuates. */
const MAX_GROWTH_MIB = 40;

/** Short hostile runs: only what they leave behind is measured. */
const HOSTILE = [
  "for (;;);",
  "async function main() { const kept = []; for (;;) kept.push(new Array(1e5).fill(1.5)); }",
  "async function main() { await new Promise(() => {}); }",
  "async function main() { for (;;) console.log('x'.repeat(1000)); }",
  "async function main() { throw new Error('x'.repeat(1e6)); }",
  "async function main({ pkpId }) { for (;;) await Actions.signMessage({ pkpId, message: 'm' }); }",
];
const SIGN = `async function main({ pkpId }) { return await Actions.signMessage({ pkpId, message: "m" }); }`;
const HONEST = [HELLO, SIGN];

interface Figures {
  runs: number;
  keyholderMiB: number;
  relayerMiB: number;
  fetcherMiB: number;
  children: number;
}

function numberAfter(flag: string, byDefault: number): number {
  const at = process.argv.indexOf(flag);
  return at < 0 ? byDefault : Number(process.argv[at + 1]);
}

function figuresOf(stack: Stack, done: number): Figures {
  const executor = stack.service("executor").child.pid ?? 0;
  const [fetcher = 0] = programsBelow(executor, "fetcher/main.js");
  return {
    runs: done,
    keyholderMiB: residentMiB(executor),
    relayerMiB: residentMiB(stack.service("relayer").child.pid ?? 0),
    fetcherMiB: residentMiB(fetcher),
    children: programsBelow(executor, "sandbox/child.js").length,
  };
}

async function main(): Promise<void> {
  const stack = await benchStack({});
  const keyholder = stack.service("executor").child.pid ?? 0;
  const failures = new Map<string, number>();
  const rows: Figures[] = [];
  let [next, done] = [0, 0];
  let children: readonly number[] = [];
  try {
    const caller = new Caller(stack.baseUrl, CALLERS);
    const [honest, hostile] = [await caller.signUp("10.1.0.1"), await caller.signUp("10.1.0.2")];
    const worker = async (): Promise<void> => {
      while (next < runs) {
        const turn = next++;
        if (turn % HOSTILE_SHARE === 0)
          await caller.run(hostile, HOSTILE[(turn / HOSTILE_SHARE) % HOSTILE.length] ?? "", { timeoutMs: 200 });
        else {
          const { end } = await caller.run(honest, HONEST[turn % HONEST.length] ?? "", { timeoutMs: 10_000 });
          if (end !== "none") failures.set(end, (failures.get(end) ?? 0) + 1);
        }
        if (++done % every === 0) console.table([rows[rows.push(figuresOf(stack, done)) - 1]]);
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, worker));
    await caller.close();
  } finally {
    children = programsBelow(keyholder, "sandbox/child.js");
    await stack.stop();
  }
  const left = children.filter((pid) => isRunning(pid, "sandbox/child.js")).length;
  const problems = [
    ...growth(rows),
    ...[...failures].map(([end, times]) => `${times} honest runs ended as ${end}`),
    ...(left > 0 ? [`${left} children are left`] : []),
  ];
  const on = { cores: availableParallelism(), node: process.version, date: new Date().toISOString().slice(0, 10) };
  writeFileSync(
    join(__dirname, "..", "..", "..", "bench", "soak-runs.json"),
    `${JSON.stringify({ on, runs, hostileShare: 1 / HOSTILE_SHARE, rows, problems }, undefined, 2)}\n`,
  );
  console.table(rows);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}

/** Growth from the middle to the end; the first half is warm-up. */
function growth(rows: readonly Figures[]): string[] {
  const [middle, last] = [rows[Math.floor(rows.length / 2)], rows.at(-1)];
  if (!middle || !last) return [];
  return (["keyholderMiB", "relayerMiB", "fetcherMiB"] as const)
    .filter((name) => last[name] - middle[name] > MAX_GROWTH_MIB)
    .map((name) => `${name} grew from ${middle[name]} to ${last[name]} after ${middle.runs} runs`);
}

void main();
