/**
 * Batches of two relayers that name the same accounts in opposite order, and concurrent outcomes: all lock the
 * accounts' rows in one order, so that no deadlock occurs.
 */
import { expect } from "chai";
import { sql } from "kysely";
import type { AccountId } from "../../protocol/ids";
import type { NewWrite } from "../../relayer/chain/submissions/begin";
import { reopenExecuted, undoAbove } from "../../relayer/chain/events/reorg";
import { newSubmissionId, type Outcome } from "../../relayer/chain/submissions/rows";
import { Transactions } from "../../relayer/chain/submissions/transactions";
import { openStore, type Store } from "../../relayer/store";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { eventually, freshAccountId } from "../support/chainBed";

/** Enough accounts that each is looked up by its id, in the order in which a statement names them. */
const ACCOUNTS = 200_000;
const MINED = { transactionHash: "0xhash", blockNumber: "0x7", blockHash: "0xblock" };

describe("turns of accounts", function () {
  this.timeout(300_000);
  let postgres: TestPostgres;
  let stores: [Store, Store];
  const accounts = Array.from({ length: ACCOUNTS }, freshAccountId).sort();
  before(async () => {
    postgres = await startPostgres();
    const databaseUrl = await postgres.database("turns");
    stores = [await openStore({ databaseUrl }), await openStore({ databaseUrl })];
    const [{ db }] = stores;
    for (const payer of [1, 2])
      await db
        .insertInto("lanes")
        .values({ payer, address: `0x${payer}`, next_nonce: 0 })
        .execute();
    await sql`insert into account_turns (account_id) select unnest(${accounts}::text[])`.execute(db);
    await sql`analyze account_turns`.execute(db);
  });
  after(async () => {
    await Promise.all((stores ?? []).map((store) => store.close()));
    await postgres?.stop();
  });

  const one = (): Transactions => transactionsOf(stores[0], "one");
  const other = (): Transactions => transactionsOf(stores[1], "other");
  const transactionsOf = (store: Store, name: string): Transactions =>
    new Transactions(store.db, name, {
      onBegin: async () => undefined,
      onOutcome: async () => undefined,
      onAbandon: async () => undefined,
    });
  const batchOf = (payer: number, ids: readonly AccountId[], turn: number): Parameters<Transactions["begin"]> => [
    payer,
    1n,
    ids.map((accountId) => writeOf(accountId, turn)),
  ];
  const writeOf = (accountId: AccountId, turn: number): NewWrite => ({
    id: newSubmissionId(),
    account_id: accountId,
    kind: "add_group",
    turn,
    calldata: "0x",
    tag: "0x",
    signer: null,
    signers_turn: null,
    idempotency_key: null,
    billed: false,
    request_id: null,
  });
  const done: Outcome = { state: "done", result: {}, charged: true };

  const [first, second, third, fourth] = accounts as [AccountId, AccountId, AccountId, AccountId];
  /** Statements that wait for a lock. */
  async function waiting(): Promise<number> {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int4 as count from pg_stat_activity where wait_event_type = 'Lock'
        and datname = current_database()`.execute(stores[0].db);
    return rows[0]?.count ?? 0;
  }

  /** Runs both while another transaction holds the two middle rows, so that each has locked what it can. */
  async function crossing<A, B>(one: () => Promise<A>, other: () => Promise<B>): Promise<[A, B]> {
    const [{ db }] = stores;
    const running = await db.transaction().execute(async (holder) => {
      await sql`select from account_turns where account_id in (${second}, ${third})
        order by account_id for update`.execute(holder);
      const both = Promise.all([one(), other()]);
      both.catch(() => undefined);
      await eventually("both wait", async () => (await waiting()) === 2);
      return { both };
    });
    return running.both;
  }

  it("are taken by crossing batches without a deadlock, each turn by one of them", async () => {
    const carriers = await crossing(
      () => one().begin(...batchOf(1, [first, second, fourth], 0)),
      () => other().begin(...batchOf(2, [fourth, third, first], 0)),
    );
    const taken = carriers.flatMap((carrier) => carrier?.writes.map(({ account_id: id }) => id) ?? []);
    expect(taken.sort()).to.deep.equal([first, second, third, fourth]);
  });

  it("are released while another relayer tries them, without a deadlock", async () => {
    const ids = accounts.slice(10, 14) as [AccountId, AccountId, AccountId, AccountId];
    const begun = await one().begin(...batchOf(1, ids, 0));
    if (begun === undefined) throw new Error("nothing has begun");
    const { db } = stores[0];
    const running = await db.transaction().execute(async (holder) => {
      await sql`select from account_turns where account_id in (${ids[0]}, ${ids[1]}, ${ids[2]})
        order by account_id for update`.execute(holder);
      const outcomes = new Map(begun.writes.toReversed().map(({ id }) => [id, done] as const));
      const both = Promise.all([
        one().end(begun.transaction.id, MINED, outcomes),
        other().begin(...batchOf(2, [ids[0], ids[1], ids[3]], 1)),
      ]);
      both.catch(() => undefined);
      await eventually("both wait", async () => (await waiting()) === 2);
      return { both };
    });
    const [ended] = await running.both;
    expect(ended.transaction.state).to.equal("mined");
  });

  it("stay with a write whose transaction is reopened while it is released, so that it is not made twice", async () => {
    const begun = await one().begin(...batchOf(1, accounts.slice(20, 21), 0));
    if (begun === undefined) throw new Error("nothing has begun");
    const { id } = begun.transaction;
    const { db } = stores[0];
    await one().addAttempt(id, { hash: "0xa", is_noop: false, raw: "0x", max_fee: "1", priority_fee: "1" });
    await one().end(id, { displacedIn: 1 }, new Map());
    const running = await db.transaction().execute(async (releasing) => {
      await sql`select from transactions where id = ${id} for update`.execute(releasing);
      const reopened = stores[1].db.transaction().execute((trx) => reopenExecuted(trx, ["0xa"]));
      reopened.catch(() => undefined);
      await eventually("it waits", async () => (await waiting()) === 1);
      await sql`update transactions set purpose = 'noop', abandon = true where id = ${id}`.execute(releasing);
      return { reopened };
    });
    await running.reopened;
    const { transaction, writes } = await one().carrier(id);
    expect([transaction.state, transaction.abandon]).to.deep.equal(["pending", false]);
    expect(writes.map(({ state }) => state)).to.deep.equal(["carried"]);
  });

  it("stay with a write whose transaction is reopened while another would carry it", async () => {
    const begun = await one().begin(...batchOf(1, accounts.slice(30, 31), 0));
    if (begun === undefined) throw new Error("nothing has begun");
    const { id } = begun.transaction;
    const { db } = stores[1];
    await one().addAttempt(id, { hash: "0xb", is_noop: false, raw: "0x", max_fee: "1", priority_fee: "1" });
    await one().end(id, { displacedIn: 1 }, new Map());
    const write = (await one().waiting()).find(({ transaction_id: of }) => of === id);
    if (write === undefined) throw new Error("it does not wait");
    const running = await db.transaction().execute(async (reopening) => {
      await sql`select from transactions where id = ${id} for update`.execute(reopening);
      const carried = one().carryAlone(write, 2, 1n);
      const failed = one().failWaiting(write, { code: "write_reverted", detail: "", facts: {} });
      Promise.all([carried, failed]).catch(() => undefined);
      await eventually("both wait", async () => (await waiting()) === 2);
      await reopenExecuted(reopening, ["0xb"]);
      return { carried, failed };
    });
    expect(await running.carried).to.equal(undefined);
    await running.failed;
    expect((await one().carrier(id)).writes.map(({ state }) => state)).to.deep.equal(["carried"]);
  });

  it("go with a write to the first of two that carry it; the transaction that it leaves carries nothing", async () => {
    const begun = await one().begin(...batchOf(1, accounts.slice(40, 42), 0));
    if (begun === undefined) throw new Error("nothing has begun");
    const { id } = begun.transaction;
    await one().addAttempt(id, { hash: "0xc", is_noop: false, raw: "0x", max_fee: "1", priority_fee: "1" });
    await one().end(id, { displacedIn: 1 }, new Map());
    const [leaving] = begun.writes;
    if (leaving === undefined) throw new Error("it carries nothing");
    const carriers = await Promise.all([one().carryAlone(leaving, 1, 1n), other().carryAlone(leaving, 2, 1n)]);
    expect(carriers.filter((carrier) => carrier !== undefined)).to.have.length(1);
    const { db } = stores[1];
    await db.transaction().execute((trx) => undoAbove(trx, { number: 0, hash: "0x" }, sql<boolean>`id = ${id}`));
    const { transaction, writes } = await one().carrier(id);
    expect([transaction.state, transaction.purpose, writes]).to.deep.equal(["pending", "noop", []]);
    await db.transaction().execute((trx) => reopenExecuted(trx, ["0xc"]));
    const executed = await one().carrier(id);
    expect([executed.transaction.purpose, executed.writes.length]).to.deep.equal(["writes", 1]);
  });

  it("come back to the transaction that executed them after all, its receipt seen before its events", async () => {
    const begun = await one().begin(...batchOf(1, accounts.slice(44, 46), 0));
    const [failing] = begun?.writes ?? [];
    if (begun === undefined || failing === undefined) throw new Error("nothing has begun");
    const { id } = begun.transaction;
    await one().addAttempt(id, { hash: "0xd", is_noop: false, raw: "0x", max_fee: "1", priority_fee: "1" });
    await one().end(id, MINED, new Map());
    const { db } = stores[1];
    await db.updateTable("transactions").set({ state: "confirmed" }).where("id", "=", id).execute();
    await one().failWaiting(failing, { code: "write_reverted", detail: "", facts: {} });
    await db.transaction().execute((trx) => undoAbove(trx, { number: 0, hash: "0x" }, sql<boolean>`id = ${id}`));
    await one().takeOver([]);
    await one().end(id, MINED, new Map([[failing.id, done]]));
    await db.transaction().execute((trx) => reopenExecuted(trx, ["0xd"]));
    const { transaction, writes } = await one().carrier(id);
    expect([transaction.state, transaction.purpose]).to.deep.equal(["pending", "writes"]);
    expect(writes.map(({ state }) => state)).to.deep.equal(["carried", "carried"]);
  });
});
