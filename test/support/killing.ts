/**
 * Repeatedly kills (SIGKILL) processes that use the ledger at random moments; then compares the ledger, the reported
 * operations and the processor's records.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { sql } from "kysely";
import type { AccountId } from "../../protocol/ids";
import { Payments } from "../../relayer/credits/payments/index";
import type { Db } from "../../relayer/store/database";
import { openStore, type Store, type StoreOptions } from "../../relayer/store/index";
import { expectBalancedBooks } from "./books";
import { DEPLOYMENT, freshAccount, fund, paymentKeys, reservationsOf, startDouble } from "./credits";
import type { SpenderOptions, Told } from "./spender";

export interface KillingOptions {
  readonly store: Pick<StoreOptions, "databaseUrl" | "dataDir">;
  readonly kills: number;
  /** Concurrent processes; more than one needs PostgreSQL. */
  readonly processes: number;
  /** Called after every kill, for example to crash the database. */
  readonly onKill?: () => Promise<void>;
}

const START_CENTS = 1_000;
const ROOT = join(__dirname, "..", "..");

export async function killAgainAndAgain({
  store: storeOptions,
  kills,
  processes,
  onKill,
}: KillingOptions): Promise<{ acts: number }> {
  const accounts = Array.from({ length: 3 }, freshAccount);
  await withStore(storeOptions, async ({ db }) => {
    for (const account of accounts) await fund(db, account, START_CENTS);
  });
  const double = await startDouble();
  const told: Told[] = [];
  try {
    const options: SpenderOptions = {
      ...(storeOptions as object),
      stripeUrl: double.url,
      deployment: DEPLOYMENT,
      accounts,
      parallel: 6,
    };
    for (let kill = 0; kill < kills; kill++) {
      const spenders = await Promise.all(Array.from({ length: processes }, () => startSpender(options, told)));
      await untilTold(told, told.length + 10 + Math.random() * 60);
      await sleep(Math.random() * 20);
      await Promise.all(spenders.map(kill9));
      await onKill?.();
    }
    await withStore(storeOptions, async (store) => {
      await endWhatWasUnderWay(store, double);
      await expectBalancedBooks(store.db);
      await expectToldActs(store, told);
      for (const account of accounts) await expectBalance(store, account, START_CENTS + paidBy(double, account));
    });
  } finally {
    await double.stop();
  }
  return { acts: told.length };
}

/** Counts operations rather than time, so that slow and fast machines get as many kills. */
async function untilTold(told: readonly Told[], acts: number): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (told.length < acts && Date.now() < deadline) await sleep(1);
}

async function withStore(options: StoreOptions, work: (store: Store) => Promise<void>): Promise<void> {
  const store = await openStore(options);
  try {
    await work(store);
  } finally {
    await store.close();
  }
}

async function startSpender(options: SpenderOptions, told: Told[]): Promise<ChildProcess> {
  const args = ["-r", "./scripts/typescript.cjs", join(ROOT, "test", "support", "spender.ts"), JSON.stringify(options)];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const [first] = (await Promise.race([once(lines, "line"), once(child, "exit").then(() => ["{}"])])) as [string];
  if ((JSON.parse(first) as { told?: string }).told !== "started")
    throw new Error("the spender ended before it had begun");
  lines.on("line", (line) => {
    const act = parsed(line);
    if (act !== undefined) told.push(act);
  });
  return child;
}

/** The kill may truncate the last line: then it does not count as reported. */
function parsed(line: string): Told | undefined {
  try {
    return JSON.parse(line) as Told;
  } catch {
    return undefined;
  }
}

async function kill9(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) throw new Error(`the spender ended by itself with ${child.exitCode}`);
  child.kill("SIGKILL");
  await once(child, "close");
}

/**
 * Does what the next relayer does on its own: takes over dead instances, resolves submissions, and asks the processor
 * for payments.
 */
async function endWhatWasUnderWay({ db }: Store, double: Awaited<ReturnType<typeof startDouble>>): Promise<void> {
  await untilNothingRuns(db);
  await db
    .updateTable("instances")
    .set({ renewed_at: sql`now() - interval '16 seconds'` })
    .execute();
  const reservations = reservationsOf(db, "the next");
  const bound = await db
    .selectFrom("credit_reservations")
    .select("id")
    .where("state", "=", "held")
    .where("bound", "=", true)
    .execute();
  const ends = bound.map(({ id }) => ({ submissionId: id, charged: true }));
  await db.transaction().execute((trx) => reservations.endWrites(ends, trx));
  await reservations.sweep();
  await new Payments(db, paymentKeys(double), DEPLOYMENT).reconcile();
}

/** The server carries out a killed client's last statement, which takes a while on a busy machine. */
async function untilNothingRuns(db: Db): Promise<void> {
  const running = sql<{ count: number }>`select count(*)::int4 as count from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state like any (array['active', 'idle in %'])`;
  while (((await running.execute(db)).rows[0]?.count ?? 0) > 0) await sleep(50);
}

async function expectToldActs({ db }: Store, told: readonly Told[]): Promise<void> {
  const rows = await db.selectFrom("ledger_entries").select(["reference", "amount_cents"]).execute();
  const entries = new Map(rows.map(({ reference, amount_cents: cents }) => [reference, cents]));
  for (const act of told) {
    if (act.told === "cost") expect(entries.get(act.id), `the cost of ${act.id}`).to.equal(-act.cents);
    if (act.told === "credited") expect(entries.get(act.id), `the credit of ${act.id}`).to.equal(500);
  }
}

async function expectBalance({ db }: Store, accountId: AccountId, paidCents: number): Promise<void> {
  const { spent } = await db
    .selectFrom("ledger_entries")
    .select(sql<number>`coalesce(-sum(amount_cents), 0)::int8`.as("spent"))
    .where("account_id", "=", accountId)
    .where("kind", "in", ["run", "write"])
    .executeTakeFirstOrThrow();
  const row = await db
    .selectFrom("credit_accounts")
    .select(["balance_cents", "reserved_cents"])
    .where("account_id", "=", accountId)
    .executeTakeFirstOrThrow();
  expect(row).to.deep.equal({ balance_cents: paidCents - spent, reserved_cents: 0 });
}

function paidBy(double: Awaited<ReturnType<typeof startDouble>>, accountId: AccountId): number {
  const paid = [...double.objects.intents.values()].filter(
    ({ status, metadata }) => status === "succeeded" && metadata.account_id === accountId,
  );
  return paid.reduce((sum, { amount }) => sum + amount, 0);
}
