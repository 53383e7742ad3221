/**
 * The cost of exact metering: `npm run bench:credits`. The same run through two relayers that differ only in the price
 * of a second: 1 cent (metering on) or 0 (off). Alternating.
 */
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { createClient, type Client } from "../../client";
import { freePort } from "../dev/ports";
import { startProcess, waitUntil } from "../dev/processes";
import { startStack, type Stack } from "../dev/stack";
import { accountRunning } from "./client";
import { rounded, summary, timed, type Summary } from "./statistics";

const RUNS = 200;
const WARM_UP = 20;
const CODE = "async function main() { return 1; }";

async function main(): Promise<void> {
  const run = await measureRuns();
  // Recorded, since other load on the machine slows every figure.
  const report = { node: process.version, cpus: cpus().length, load: rounded(loadavg()[0] ?? 0), run };
  writeFileSync(
    join(__dirname, "..", "..", "..", "bench", "credits.json"),
    `${JSON.stringify(report, undefined, 2)}\n`,
  );
  print(run);
}

interface RunReport {
  readonly meteredMs: Summary;
  readonly freeMs: Summary;
  /** Median difference between consecutive runs of both relayers. */
  readonly addedMs: number;
  readonly ratio: number;
}

async function measureRuns(): Promise<RunReport> {
  const stack = await startStack({ env: { SIGNUP_CREDIT_CENTS: "100000" } });
  const free = await startFreeRelayer(stack);
  try {
    const { client, key } = await accountRunning(stack.baseUrl, [CODE]);
    return await compare(client, createClient({ baseUrl: free.baseUrl, apiKey: key }));
  } finally {
    await free.stop();
    await stack.stop();
  }
}

async function compare(metered: Client, free: Client): Promise<RunReport> {
  const oneRun = (client: Client) => async (): Promise<void> => {
    const { has_error: failed } = await client.runAction({ code: CODE });
    if (failed) throw new Error("the run failed");
  };
  const on: number[] = [];
  const off: number[] = [];
  for (let run = -WARM_UP; run < RUNS; run++) {
    const pair: [number[], Client][] = [
      [on, metered],
      [off, free],
    ];
    for (const [samples, client] of run % 2 === 0 ? pair : pair.reverse()) {
      const ms = await timed(oneRun(client));
      if (run >= 0) samples.push(ms);
    }
  }
  const differences = on.map((ms, index) => ms - (off[index] ?? 0));
  const [meteredMs, freeMs] = [summary(on), summary(off)];
  return { meteredMs, freeMs, addedMs: summary(differences).median, ratio: rounded(meteredMs.median / freeMs.median) };
}

/** A second relayer on the same chain and executor, with its own embedded store, where runs are free. */
async function startFreeRelayer(stack: Stack): Promise<{ baseUrl: string; stop: () => Promise<void> }> {
  const port = await freePort();
  const env = {
    PATH: process.env.PATH,
    NODE_ENV: "development",
    PORT: String(port),
    METRICS_PORT: String(await freePort()),
    RPC_URLS: stack.rpcUrl,
    CHAIN_ID: String(stack.deployment.chainId),
    CONTRACT_ADDRESS: stack.contractAddress,
    EXECUTOR_SOCKET: stack.executorSocket,
    PRICE_RUN_SECOND_CENTS: "0",
  };
  const main = join(__dirname, "..", "..", "relayer", "main.js");
  const relayer = startProcess({
    name: "relayer without metering",
    command: process.execPath,
    args: [main],
    env,
    onLine: () => undefined,
  });
  const baseUrl = `http://127.0.0.1:${port}`;
  await waitUntil("the relayer without metering", async () => (await fetch(`${baseUrl}/ready`)).ok, {
    timeoutMs: 60_000,
    died: relayer.died,
  });
  return { baseUrl, stop: () => relayer.stop() };
}

function print(run: RunReport): void {
  const of = ({ median, p10, p90 }: Summary): string => `${median} ms [${p10}..${p90}]`;
  console.log(`run with metering     ${of(run.meteredMs)}`);
  console.log(`run without           ${of(run.freeMs)}`);
  console.log(`metering adds         ${run.addedMs} ms in the median (bar: 3 ms), ratio ${run.ratio}`);
}

void main();
