/**
 * The cost of exact metering: `npm run bench:credits`.
 * 1. The same run through two relayers that differ only in the price of a second: 1 cent (metering on) or 0 (off).
 * Alternating.
 * 2. Reserve and settle alone, and two hundred concurrent spenders of one account: on the embedded store, and on
 * PostgreSQL if DATABASE_URL is set.
 */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { createAccount, createClient, type Client } from "../../client";
import type { AccountId } from "../../protocol/ids";
import { Credits } from "../../relayer/credits";
import { openStore } from "../../relayer/store";
import { freePort } from "../dev/ports";
import { startProcess, waitUntil } from "../dev/processes";
import { startStack, type Stack } from "../dev/stack";
import { rounded, summary, timed, type Summary } from "./statistics";

const RUNS = 200;
const WARM_UP = 20;
const SPENDERS = 200;
const ACTS_PER_SPENDER = 10;
const CODE = "async function main() { return 1; }";

async function main(): Promise<void> {
  const run = await measureRuns();
  const ledgers = [await measureLedger(undefined)];
  const { DATABASE_URL } = process.env;
  if (DATABASE_URL !== undefined) ledgers.push(await measureLedger(DATABASE_URL));
  // Recorded, since other load on the machine slows every figure.
  const report = { node: process.version, cpus: cpus().length, load: rounded(loadavg()[0] ?? 0), run, ledgers };
  writeFileSync(
    join(__dirname, "..", "..", "..", "bench", "credits.json"),
    `${JSON.stringify(report, undefined, 2)}\n`,
  );
  print(report);
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
    const { account, client } = await createAccount(
      { baseUrl: stack.baseUrl },
      { account_name: "bench", account_description: "" },
    );
    const { group_id: group } = await client.addGroup({ group_name: "bench", group_description: "" });
    await client.addActionToGroup({ group_id: group, action_ipfs_cid: await client.getActionIpfsId(CODE) });
    return await compare(client, createClient({ baseUrl: free.baseUrl, apiKey: account.api_key }));
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

interface LedgerReport {
  readonly store: "pglite" | "postgres";
  readonly reserveAndSettleMs: Summary;
  readonly spenders: number;
  readonly actsPerSecond: number;
  readonly refused: number;
  readonly balanceCents: number;
}

async function measureLedger(databaseUrl: string | undefined): Promise<LedgerReport> {
  const store = await openStore({ databaseUrl });
  const credits = new Credits({
    db: store.db,
    instanceId: randomBytes(8).toString("hex"),
    prices: { managementWriteCents: 1, runSecondCents: 1 },
    signup: { cents: 2_000, dailyCapCents: undefined, everyAccount: true },
    deployment: "bench",
    onError: (error) => console.error(error),
  });
  try {
    const alone: number[] = [];
    const account = freshAccount();
    for (let act = -WARM_UP; act < RUNS; act++) {
      const ms = await timed(() => spend(credits, account));
      if (act >= 0) alone.push(ms);
    }
    return { store: store.kind, reserveAndSettleMs: summary(alone), ...(await measureSpenders(credits)) };
  } finally {
    await store.close();
  }
}

/**
 * Two thousand operations by two hundred spenders against credit for two thousand seconds: none may be refused before
 * the credit is used up, and each must be booked.
 */
async function measureSpenders(
  credits: Credits,
): Promise<Pick<LedgerReport, "spenders" | "actsPerSecond" | "refused" | "balanceCents">> {
  const account = freshAccount();
  await credits.accounts.balance(account);
  let refused = 0;
  const spender = async (): Promise<void> => {
    for (let act = 0; act < ACTS_PER_SPENDER; act++) await spend(credits, account).catch(() => (refused += 1));
  };
  const ms = await timed(() => Promise.all(Array.from({ length: SPENDERS }, spender)));
  const { balanceCents } = await credits.accounts.balance(account);
  const acts = SPENDERS * ACTS_PER_SPENDER;
  if (balanceCents !== 2_000 - (acts - refused)) throw new Error(`the books are wrong: ${balanceCents} cents left`);
  return { spenders: SPENDERS, actsPerSecond: Math.round((acts / ms) * 1000), refused, balanceCents };
}

async function spend(credits: Credits, accountId: AccountId): Promise<void> {
  const { reservationId } = await credits.reservations.reserveRun({ accountId, limitMs: 1000 });
  await credits.reservations.settleRun(reservationId, 5);
}

const freshAccount = (): AccountId => `0x${randomBytes(32).toString("hex")}` as AccountId;

function print({ run, ledgers }: { run: RunReport; ledgers: readonly LedgerReport[] }): void {
  const of = ({ median, p10, p90 }: Summary): string => `${median} ms [${p10}..${p90}]`;
  console.log(`run with metering     ${of(run.meteredMs)}`);
  console.log(`run without           ${of(run.freeMs)}`);
  console.log(`metering adds         ${run.addedMs} ms in the median (bar: 3 ms), ratio ${run.ratio}`);
  for (const ledger of ledgers) {
    console.log(`${ledger.store}: reserve and settle ${of(ledger.reserveAndSettleMs)}`);
    console.log(
      `${ledger.store}: ${ledger.spenders} spenders of one account at once: ${ledger.actsPerSecond} acts/s, ` +
        `${ledger.balanceCents} cents left, ${ledger.refused} refused`,
    );
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
