/** A store with years of data: no statement of daily work scans old rows, and unneeded data is deleted. */
import { expect } from "chai";
import { CompiledQuery, sql } from "kysely";
import type { AccountId } from "../../../protocol/ids";
import { confirm, passedBlocks, reopenOrphans, undoAbove } from "../../../relayer/chain/events/reorg";
import { appendEvents } from "../../../relayer/chain/events/eventList";
import { Lanes } from "../../../relayer/chain/payers/lanes";
import { AccountQueue } from "../../../relayer/chain/submissions/accountQueue";
import { newSubmissionId, type Outcome } from "../../../relayer/chain/submissions/rows";
import { Transactions } from "../../../relayer/chain/submissions/transactions";
import { Credits } from "../../../relayer/credits";
import type { Store } from "../../../relayer/store";
import type { Db } from "../../../relayer/store/database";
import { dropOld } from "../../../relayer/store/retention";
import { workOf } from "../../../relayer/triggers/due";
import { dailyWork } from "../../../scripts/bench/dailyWork";
import { makeOld } from "../../../scripts/bench/oldStore";
import { GROWING_TABLES, SMALL_TABLES } from "../../../scripts/bench/oldTables";
import { freshAccount, reservationsOf } from "../../support/credits";
import { notingStatements } from "../../support/statements";
import { openTestStore } from "../../support/testStore";

/** The code kept has a bound, and an index of its own for this sum. */
const OF_ALL_CODE = "sum(bytes), 0)::int8 as bytes from shared_code";
const PRICES = { managementWriteCents: 1, runSecondCents: 1 };

const MINED = { transactionHash: "0x", blockNumber: "0x1", blockHash: "0x" };
const DONE: Outcome = { state: "done", result: {}, charged: true };

describe("a store with years of data", function () {
  this.timeout(60_000);
  const seen = new Set<string>();
  let store: Store;
  let db: Db;

  before(async () => {
    store = await openTestStore({ around: notingStatements(seen) });
    ({ db } = store);
    // As on PostgreSQL: the plans below are of the planner's own choice.
    await sql`set enable_seqscan = on`.execute(db);
    await makeOld(db, { submissions: 20_000, postings: 20_000, others: 5_000 });
    await sql`insert into credit_accounts (account_id) select 'idle ' || n from generate_series(1, 5000) n`.execute(db);
    await sql`analyze`.execute(db);
    // Plans are to be those of millions of rows.
    await sql`update pg_class set reltuples = reltuples * 1000 where oid in (
      select unnest(array[indrelid, indexrelid]) from pg_index where indrelid::regclass::text = any(${GROWING_TABLES}))
    `.execute(db);
    await sql`insert into followed_blocks values (2, '0x2'), (3, '0x3')`.execute(db);
    await sql`insert into lanes (payer, address, next_nonce) values (1, 'new', 0)`.execute(db);
  });
  after(() => store.close());

  function creditsOver(instanceId: string) {
    const signup = { cents: 100, dailyCapCents: 10_000, everyAccount: true };
    return new Credits({ db, instanceId, prices: PRICES, signup, deployment: "old", onError: () => undefined });
  }

  /** Two writes that share a transaction. */
  async function batch(transactions: Transactions): Promise<void> {
    const writes = await Promise.all(
      [freshAccount(), freshAccount()].map(async (accountId) => {
        await new AccountQueue(db, { maxWaitingPerAccount: 9, maxWaiting: 9 }).turnsOf([accountId]);
        const write = {
          id: newSubmissionId(),
          account_id: accountId,
          kind: "add_group",
          turn: 0,
          calldata: "0x",
          tag: "0x",
          billed: true,
        };
        return { ...write, signer: null, signers_turn: null, idempotency_key: null, request_id: null };
      }),
    );
    const carrier = await transactions.begin(1, 1n, writes);
    if (carrier === undefined) throw new Error("the batch lost its turns");
    const { id } = carrier.transaction;
    await transactions.addAttempt(id, { hash: `0x${id}`, is_noop: false, raw: "0x", max_fee: "1", priority_fee: "1" });
    await transactions.notePending(id);
    await transactions.end(id, MINED, new Map(writes.map((write) => [write.id, DONE])));
  }

  async function daysWork(): Promise<void> {
    const credits = creditsOver("me");
    const account: AccountId = freshAccount();
    const transactions = new Transactions(db, "me", {
      onBegin: (ids, trx) => credits.reservations.bindWrites(ids, trx),
      onOutcome: (outcomes, trx) => credits.reservations.endWrites(outcomes, trx),
      onAbandon: (id) => credits.reservations.abandonWrite(id),
    });
    const queue = new AccountQueue(db, { maxWaitingPerAccount: 9, maxWaiting: 9 });
    const turn = (await queue.turnsOf([account])).get(account);
    if (turn === undefined) throw new Error("the account is busy");
    const id = newSubmissionId();
    await credits.reservations.reserveWrite({ accountId: account, submissionId: id, cents: 1 });
    const write = {
      ...{ id, account_id: account, kind: "add_group", turn, calldata: "0x", tag: "0x" },
      ...{ signer: null, signers_turn: null, idempotency_key: id, billed: true, request_id: null },
    };
    const carrier = await transactions.begin(1, 1n, [write]);
    if (carrier === undefined) throw new Error("the write lost its turn");
    expect((await queue.turnsOf([account])).size).to.equal(0);
    const attempt = { hash: `0x${id}`, is_noop: false, raw: "0x", max_fee: "1", priority_fee: "1" };
    await transactions.addAttempt(carrier.transaction.id, attempt);
    await transactions.notePending(carrier.transaction.id);
    await transactions.byIdempotencyKey(id);
    await transactions.attempts(carrier.transaction.id);
    await transactions.takeOver([]);
    await transactions.waiting();
    await transactions.openByState();
    await new Lanes({ db, maxInFlight: 9 }).all();
    await transactions.end(carrier.transaction.id, MINED, new Map([[id, DONE]]));
    await batch(transactions);
    const { reservationId } = await credits.reservations.reserveRun({ accountId: account, limitMs: 1_000 });
    const record = {
      accountId: account,
      keyId: account,
      requestId: "r",
      cid: "c",
      actionHash: account,
      durationMs: 1,
      outcome: "threw",
      errorMessage: "no",
      pkpsUsed: [],
      receiptSha256: "3c".repeat(32),
    };
    await credits.reservations.settleRun(reservationId, 5, { ...record, startedAt: new Date() } as never);
    await credits.accounts.history(account, { number: 0, size: 50 });
    await credits.runs.list(account, { outcome: "succeeded" }, { number: 0, size: 50 });
    await credits.accounts.balance(account);
    await reservationsOf(db, "me").sweep();
    await dailyWork(db, credits, "me");
    await workOf(db, 500);
    await reopenOrphans(db);
    await confirm(db, 2);
    await passedBlocks(db);
    const event = {
      name: "GroupAdded",
      account_id: account,
      transaction_hash: "0x",
      log_index: 0,
      args: "{}",
      owner: null,
    };
    await db.transaction().execute(async (trx) => {
      await appendEvents(trx, [{ ...event, block_number: 3, block_hash: "0x3" }], 2);
      await appendEvents(trx, [{ ...event, block_number: 2, block_hash: "0x2" }], 3);
    });
    await db.transaction().execute((trx) => undoAbove(trx, { number: 2, hash: "0x2" }));
    await dropOld(db, { detailDays: 7, runRecordsDays: 90 });
  }

  it("has grown in every table, but for a closed list of those that stay small", async () => {
    const { rows } = await sql<{ name: string }>`select table_name as name from information_schema.tables
      where table_schema = 'public' and table_type = 'BASE TABLE' and table_name not like 'kysely%'`.execute(db);
    expect(rows.map(({ name }) => name).sort()).to.deep.equal([...GROWING_TABLES, ...Object.keys(SMALL_TABLES)].sort());
    for (const table of GROWING_TABLES) {
      const { rows: counted } = await sql<{ n: number }>`select count(*)::int4 as n from ${sql.table(table)}`.execute(
        db,
      );
      expect(counted[0]?.n, table).to.be.at.least(500);
    }
  });

  it("is not scanned by any statement of a write, a run, a list, a sweep, a reorg or retention", async () => {
    seen.clear();
    await daysWork();
    const statements = [...seen].filter(
      (text) =>
        /^\s*(select|insert|update|delete|with)/i.test(text) &&
        GROWING_TABLES.some((table) => text.includes(table)) &&
        !text.includes(OF_ALL_CODE),
    );
    expect(statements.length).to.be.greaterThan(100);
    const scans: string[] = [];
    for (const text of statements) {
      const parameters = new Set(text.match(/\$\d+/g)).size;
      const { rows } = await db.executeQuery(
        CompiledQuery.raw(`explain (generic_plan) ${text}`, Array<null>(parameters).fill(null)),
      );
      const plan = rows.map((row) => Object.values(row as object)[0] as string).join("\n");
      for (const table of GROWING_TABLES)
        if (new RegExp(`Seq Scan on ${table}\\b`).test(plan)) scans.push(`${table}: ${text}`);
    }
    expect(scans).to.deep.equal([]);
  });

  it("deletes the bytes of old final writes and closed reservations, and keeps what accounting needs", async () => {
    const count = async (query: string): Promise<number> =>
      Number((await sql.raw<{ n: number }>(`select count(*) as n from ${query}`).execute(db)).rows[0]?.n);
    const [entries, submissions] = [await count("ledger_entries"), await count("writes")];
    await sql`insert into transactions (id, purpose, state, payer, nonce, gas_limit)
      values ('noop', 'noop', 'confirmed', 1000, 100000, 1), ('open', 'noop', 'pending', 1000, 100001, 1)`.execute(db);
    await sql`insert into attempts (hash, transaction_id, is_noop, raw, max_fee, priority_fee, created_at)
      select '0x' || id, id, true, '0x', 1, 1, now() - interval '8 days'
      from unnest(array['old 6000', 'noop', 'open']) id`.execute(db);
    for (const table of ["transactions", "writes"])
      await sql`update ${sql.table(table)} set updated_at = now() - interval '8 days'
        where id in ('old 6000', 'old 10', 'noop', 'open')`.execute(db);
    await sql`update credit_reservations set closed_at = now() - interval '8 days'
      where id in (select id from credit_reservations where state <> 'held' limit 700)`.execute(db);
    await sql`insert into instances (id, renewed_at) values ('long gone', now() - interval '2 days')`.execute(db);
    // The last one's key was renewed.
    await sql`insert into key_expiries (key_id, expires_at, account_id) select 'key ' || n, n, '' from
      generate_series(1, 700) n union all select 'key 700', extract(epoch from now())::int8, ''`.execute(db);
    const [bytes, closed] = [await count("writes where calldata is not null"), await count("credit_reservations")];
    await dropOld(db, { detailDays: 7, runRecordsDays: 90 });
    expect(await count("writes where calldata is not null")).to.equal(bytes - 2);
    const attemptsOf = (id: string): Promise<number> => count(`attempts where transaction_id = '${id}'`);
    expect([await attemptsOf("old 6000"), await attemptsOf("noop"), await attemptsOf("open")]).to.eql([0, 0, 1]);
    expect(await count("credit_reservations")).to.equal(closed - 700);
    expect(await count("instances where id = 'long gone'")).to.equal(0);
    expect([
      await count("key_expiries where key_id like 'key %'"),
      await count("key_expiries where key_id = 'key 700'"),
    ]).to.deep.equal([1, 1]);
    expect([await count("ledger_entries"), await count("writes")]).to.deep.equal([entries, submissions]);
  });
});
