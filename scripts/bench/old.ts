/**
 * Costs of an empty store and of one with years of data: `npm run bench:old -- --submissions 1000000 --postings
 * 10000000 --others 10000000`, the rows of each other table that grows with use. The embedded store first, in memory,
 * sized by `--embedded-submissions`, `--embedded-postings` and `--embedded-others`; then Debian's PostgreSQL, started
 * for it, with empty caches when the old store is measured. Writes bench/old.json, and exits with 1 when a statement
 * takes more than 100 ms on the old PostgreSQL.
 */
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { sql, type PostgresPool } from "kysely";
import type { AccountId } from "../../protocol/ids";
import { newSubmissionId } from "../../relayer/chain/submissions/rows";
import { Transactions } from "../../relayer/chain/submissions/transactions";
import { Credits } from "../../relayer/credits";
import { MAX_PAGE_OFFSET } from "../../relayer/credits/page";
import { openStore, type Store } from "../../relayer/store";
import type { Db } from "../../relayer/store/database";
import { Instance } from "../../relayer/store/instance";
import { startPostgres, type TestPostgres } from "../dev/postgres";
import { dailyWork } from "./dailyWork";
import { LARGEST_ACCOUNT, makeOld, type Age } from "./oldStore";
import { rounded, summary, timed, type Summary } from "./statistics";
import { reopenOrphans, undoAbove } from "../../relayer/chain/events/reorg";
import { Audit } from "../../relayer/credits/audit";
import { recordEnds } from "../../relayer/credits/runRecords";
import { dropOld } from "../../relayer/store/retention";

const ACTS = 200;
const WARM_UP = 20;
const PAYER = 1;
const SLOWEST_SHOWN = 12;

interface Ages {
  readonly writeMs: Summary;
  readonly runMs: Summary;
  readonly historyPageMs: Summary;
  readonly runsPageMs: Summary;
  /** Of the largest account, as far from the start as a page may be. */
  readonly farHistoryPageMs: Summary;
  readonly farRunsPageMs: Summary;
  readonly sweepMs: Summary;
}

async function main(): Promise<void> {
  const text = (value: number) => ({ type: "string", default: String(value) }) as const;
  const { values } = parseArgs({
    options: {
      submissions: text(1_000_000),
      postings: text(10_000_000),
      others: text(10_000_000),
      "embedded-submissions": text(100_000),
      "embedded-postings": text(1_000_000),
      "embedded-others": text(20_000),
    },
  });
  const age = (prefix: "" | "embedded-"): Age => ({
    submissions: Number(values[`${prefix}submissions`]),
    postings: Number(values[`${prefix}postings`]),
    others: Number(values[`${prefix}others`]),
  });
  await compare(undefined, age("embedded-"));
  const postgres = await startPostgres();
  try {
    await compare(postgres, age(""));
  } finally {
    await postgres.stop();
  }
}

/** Measures one store empty and again after ageing it, then with empty caches. */
async function compare(postgres: TestPostgres | undefined, age: Age): Promise<void> {
  const databaseUrl = postgres?.url;
  let store = await openStore({ databaseUrl });
  try {
    console.log(
      `${store.kind}: ${age.submissions} submissions, ${age.postings} postings, ${age.others} rows of others`,
    );
    const young = await measured(store);
    const onProgress = (rows: number): unknown => process.stderr.write(`\r${rows} rows `);
    const fillSeconds = Math.round((await timed(() => makeOld(store.db, age, onProgress))) / 1000);
    const statements = new SlowestStatements();
    let areCachesEmpty = false;
    if (postgres !== undefined) {
      await store.close();
      await postgres.crash();
      areCachesEmpty = dropCaches();
      store = await openStore({ databaseUrl, around: statements.around });
      statements.forget();
    }
    const old = await measured(store);
    await backgroundWork(store.db);
    const slowest = statements.list().slice(0, SLOWEST_SHOWN);
    const takes = {
      databaseMiB: await databaseMiB(store.db),
      processMiB: Math.round(process.memoryUsage().rss / 2 ** 20),
    };
    const machine = { node: process.version, cpus: cpus().length, load: rounded(loadavg()[0] ?? 0) };
    keep(store.kind, { ...machine, ...age, fillSeconds, ...takes, young, old, areCachesEmpty, slowest });
    print(young, old);
    console.log(
      `filled in ${fillSeconds} s; the database takes ${takes.databaseMiB} MiB, this process ${takes.processMiB} MiB`,
    );
    printSlowest(slowest);
  } finally {
    await store.close();
  }
}

function printSlowest(slowest: ReturnType<SlowestStatements["list"]>): void {
  for (const { ms, statement } of slowest) console.log(`${ms <= MAX_STATEMENT_MS ? "✓" : "✗"} ${ms} ms  ${statement}`);
  if (slowest.some(({ ms }) => ms > MAX_STATEMENT_MS)) process.exitCode = 1;
}

async function measured(store: Store): Promise<Ages> {
  const instance = new Instance({ db: store.db, storeIsOurs: store.kind === "pglite", onError: () => undefined });
  await instance.start();
  try {
    return await measure(store, instance.id);
  } finally {
    await instance.stop();
  }
}

async function databaseMiB(db: Db): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`select pg_database_size(current_database())::int8 as bytes`.execute(db);
  return Math.round((rows[0]?.bytes ?? 0) / 2 ** 20);
}

async function measure({ db }: Store, instanceId: string): Promise<Ages> {
  const credits = creditsOver(db, instanceId);
  const transactions = transactionsOver(db, instanceId, credits);
  await sql`insert into lanes (payer, address, next_nonce) values (${PAYER}, 'bench', 0)
    on conflict do nothing`.execute(db);
  const account = `0x${randomBytes(32).toString("hex")}` as AccountId;
  await sql`insert into account_turns (account_id) values (${account})`.execute(db);
  await credits.accounts.balance(account);
  const turn = { number: 0 };
  const page = { number: 0, size: 50 };
  const far = { number: MAX_PAGE_OFFSET / page.size, size: page.size };
  const largest = LARGEST_ACCOUNT as AccountId;
  return {
    writeMs: await repeated(() => write(transactions, credits, account, turn)),
    runMs: await repeated(async () => {
      const { reservationId } = await credits.reservations.reserveRun({ accountId: account, limitMs: 1_000 });
      await credits.reservations.settleRun(reservationId, 5);
    }),
    historyPageMs: await repeated(() => credits.accounts.history(account, page)),
    runsPageMs: await repeated(() => credits.runs.list(account, {}, page)),
    farHistoryPageMs: await repeated(() => credits.accounts.history(largest, far)),
    farRunsPageMs: await repeated(() => credits.runs.list(largest, {}, far)),
    sweepMs: await repeated(() => transactions.takeOver([])),
  };
}

const creditsOver = (db: Db, instanceId: string): Credits =>
  new Credits({
    db,
    instanceId,
    prices: { managementWriteCents: 1, runSecondCents: 1 },
    signup: { cents: 2_000, dailyCapCents: undefined, everyAccount: true },
    deployment: "bench",
    onError: (error) => console.error(error),
  });

function transactionsOver(db: Db, instanceId: string, credits: Credits): Transactions {
  return new Transactions(db, instanceId, {
    onBegin: (ids, trx) => credits.reservations.bindWrites(ids, trx),
    onOutcome: (outcomes, trx) => credits.reservations.endWrites(outcomes, trx),
    onAbandon: (id) => credits.reservations.abandonWrite(id),
  });
}

/** The store's part of one write: reserve, record with its nonce, store the signed bytes, outcome and settlement. */
async function write(
  transactions: Transactions,
  credits: Credits,
  accountId: AccountId,
  turn: { number: number },
): Promise<void> {
  const id = newSubmissionId();
  await credits.reservations.reserveWrite({ accountId, submissionId: id, cents: 1 });
  const begun = {
    ...{ id, account_id: accountId, kind: "bench", turn: turn.number++, calldata: `0x${"ab".repeat(200)}`, tag: "0x" },
    ...{ signer: null, signers_turn: null, idempotency_key: id, billed: true, request_id: null },
  };
  const carrier = await transactions.begin(PAYER, 100_000n, [begun]);
  if (carrier === undefined) throw new Error("the write lost its turn");
  await transactions.addAttempt(carrier.transaction.id, {
    hash: `0x${id}`,
    is_noop: false,
    raw: `0x${"cd".repeat(300)}`,
    max_fee: "1",
    priority_fee: "1",
  });
  await transactions.notePending(carrier.transaction.id);
  const receipt = { transactionHash: `0x${id}`, blockNumber: "0x1", blockHash: "0x1" };
  const outcome = { state: "done", result: {}, charged: true } as const;
  await transactions.end(carrier.transaction.id, receipt, new Map([[id, outcome]]));
}

async function repeated(act: () => Promise<unknown>): Promise<Summary> {
  const samples: number[] = [];
  for (let turn = -WARM_UP; turn < ACTS; turn++) {
    const ms = await timed(act);
    if (turn >= 0) samples.push(ms);
  }
  return summary(samples);
}

/** Both stores' figures in one file. */
function keep(kind: Store["kind"], report: object): void {
  const file = join(__dirname, "..", "..", "..", "bench", "old.json");
  const earlier = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as object) : {};
  writeFileSync(file, `${JSON.stringify({ ...earlier, [kind]: report }, undefined, 2)}\n`);
}

function print(young: Ages, old: Ages): void {
  for (const name of Object.keys(young) as (keyof Ages)[]) {
    console.log(
      `${name.padEnd(17)} young ${young[name].median} ms [${young[name].p10}..${young[name].p90}], old ` +
        `${old[name].median} ms [${old[name].p10}..${old[name].p90}]`,
    );
  }
}

/** No statement may take longer: others wait for its connection, and for the rows that it locks. */
const MAX_STATEMENT_MS = 100;
const AUDIT_TURNS = 100;

/** Notes how long statements take, by their text. */
class SlowestStatements {
  readonly #ms = new Map<string, number>();

  readonly around = (pool: PostgresPool): PostgresPool => ({
    connect: async () => {
      const client = await pool.connect();
      const query = client.query.bind(client) as unknown as (
        text: string,
        values: readonly unknown[],
      ) => Promise<unknown>;
      const noting = async (text: string, values: readonly unknown[]): Promise<unknown> => {
        let answer: unknown;
        const ms = await timed(async () => (answer = await query(text, values)));
        this.#ms.set(text, Math.max(ms, this.#ms.get(text) ?? 0));
        return answer;
      };
      return { query: noting as unknown as typeof client.query, release: () => client.release() };
    },
    end: () => pool.end(),
  });

  forget(): void {
    this.#ms.clear();
  }

  /** The slowest first, in milliseconds. */
  list(): { readonly ms: number; readonly statement: string }[] {
    const all = [...this.#ms].map(([text, ms]) => ({
      ms: Math.round(ms * 10) / 10,
      statement: text.replace(/\s+/g, " ").trim().slice(0, 160),
    }));
    return all.sort((a, b) => b.ms - a.ms);
  }
}

/** Beside requests: what a relayer does every second, minute and hour, and at a reorg. */
async function backgroundWork(db: Db): Promise<void> {
  await db
    .insertInto("followed_blocks")
    .values([
      { number: 1_000_000, hash: "0x1" },
      { number: 1_000_001, hash: "0x2" },
    ])
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await reopenOrphans(db);
  await db.transaction().execute((trx) => undoAbove(trx, { number: 1_000_000, hash: "0x1" }));
  await recordEnds(db);
  const audit = new Audit({ db, onWrong: () => undefined });
  for (let turn = 0; turn < AUDIT_TURNS; turn++) await audit.turn();
  await dailyWork(db, creditsOver(db, "bench"), "bench");
  await dropOld(db, { detailDays: 7, runRecordsDays: 90 });
}

/** Of the operating system, for the whole machine; false where this process may not. */
function dropCaches(): boolean {
  try {
    writeFileSync("/proc/sys/vm/drop_caches", "1");
    return true;
  } catch {
    return false;
  }
}

void main();
