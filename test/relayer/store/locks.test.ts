/** Advisory locks are numbers in one space for the whole database: those of different uses must not be equal. */
import { expect } from "chai";
import { randomUUID } from "node:crypto";
import { sql, type PostgresPool } from "kysely";
import { grantSignupCredit } from "../../../relayer/credits/signup";
import type { Executor } from "../../../relayer/executor/client";
import type { Store } from "../../../relayer/store/index";
import { lockChainEvents } from "../../../relayer/store/locks";
import { storeCounts } from "../../../relayer/store/mintCounts";
import { TriggerBook } from "../../../relayer/triggers/book";
import { Webhooks } from "../../../relayer/webhooks/registry";
import { freshAccount, freshKey } from "../../support/credits";
import { openTestStore } from "../../support/testStore";

/** By number, as PostgreSQL shows them: the two halves, and whether it was given as one or as two. */
type Locks = ReadonlyMap<string, string>;

const LOCKS = `select format('%s %s %s', classid, objid, objsubid) as number, mode from pg_locks
  where locktype = 'advisory' and pid = pg_backend_pid()`;

/** Notes what each transaction has locked by its end. */
const notingLocks =
  (locks: Map<string, string>) =>
  (pool: PostgresPool): PostgresPool => ({
    connect: async () => {
      const client = await pool.connect();
      const query = client.query as unknown as (
        text: string,
        values: readonly unknown[],
      ) => Promise<{ rows: { number: string; mode: string }[] }>;
      const noting = async (text: string, values: readonly unknown[]): Promise<unknown> => {
        if (text === "commit") for (const { number, mode } of (await query(LOCKS, [])).rows) locks.set(number, mode);
        return query(text, values);
      };
      return { query: noting as unknown as typeof client.query, release: () => client.release() };
    },
    end: () => pool.end(),
  });

describe("advisory locks", function () {
  this.timeout(60_000);
  const locks = new Map<string, string>();
  const account = freshAccount();
  let store: Store;
  before(async () => {
    store = await openTestStore({ around: notingLocks(locks) });
    await sql`create schema ground`.execute(store.db);
    await sql`set search_path = ground, pg_catalog, public`.execute(store.db);
  });
  after(() => store.close());

  /** From now on every text about an account has the hash of that text, as ids can be made that have. */
  const grind = (text: string): Promise<unknown> =>
    sql`create or replace function ground.hashtext(given text) returns int4 language sql as $$
      select pg_catalog.hashtext(case when given like '%0x%' then ${sql.lit(text)} else given end) $$`.execute(
      store.db,
    );

  const locksOf = async (work: () => Promise<unknown>): Promise<Locks> => {
    locks.clear();
    await work();
    return new Map(locks);
  };
  const without = (some: Locks, others: Locks): Locks => new Map([...some].filter(([number]) => !others.has(number)));

  const webhooks = (): Webhooks =>
    new Webhooks({ db: store.db, executor: { call: (async () => ({})) as Executor["call"] }, httpsOnly: true });
  const changeOwner = (): Promise<unknown> =>
    store.db.transaction().execute((trx) =>
      trx
        .insertInto("chain_events")
        .values({
          ...{
            account_id: freshAccount(),
            name: "AccountOwnershipTransferred",
            args: "{}",
            owner: `0x${"0e".repeat(20)}`,
          },
          ...{ log_index: 0, block_number: 1, block_hash: freshKey(), transaction_hash: freshKey() },
        })
        .execute(),
    );
  const addTrigger = (): Promise<void> =>
    new TriggerBook(store.db).add({
      ...{ id: randomUUID(), accountId: account, keyId: freshKey(), name: "t", kind: "schedule", code: undefined },
      settings: { schedule: { cron: "* * * * *", time_zone: "UTC", missed: "skip" } },
      cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as never,
      ...{ paramsSha256: freshKey(), sealed: "sealed" },
    });
  const grantCredit = (): Promise<number> =>
    grantSignupCredit(store.db, { cents: 1, dailyCapCents: 100, everyAccount: false }, freshAccount());

  for (const text of ["webhooks", "chain_events"])
    it(`of different uses are different, also for accounts whose texts hash like '${text}'`, async () => {
      await grind(text);
      const { id } = await webhooks().create({ accountId: account }, {});
      const ofChanges = await locksOf(() => webhooks().update({ accountId: account }, id, { description: text }));
      const uses: Readonly<Record<string, Locks>> = {
        "changes of webhooks": ofChanges,
        "an account's webhooks": without(await locksOf(() => webhooks().create({ accountId: account }, {})), ofChanges),
        "an account's triggers": await locksOf(addTrigger),
        "the follower": await locksOf(() => store.db.transaction().execute(lockChainEvents)),
        "signup credit": await locksOf(grantCredit),
        "mint counts": await locksOf(() => storeCounts(store.db).change(["all"], () => [1])),
      };
      const ofOwners = await locksOf(changeOwner);
      for (const [number] of ofChanges)
        expect([ofChanges.get(number), ofOwners.get(number)]).to.deep.equal(["ShareLock", "ExclusiveLock"]);
      const all = { ...uses, "a change of owner": without(ofOwners, ofChanges) };
      for (const [use, own] of Object.entries(uses)) expect(own.size, use).to.be.greaterThan(0);
      const taken = Object.values(all).flatMap((own) => [...own.keys()]);
      expect(taken).to.deep.equal([...new Set(taken)]);
    });

  it("of the follower and of owners are also those of relayers before this version, which run beside it", async () => {
    const before = (name: string): Promise<Locks> =>
      locksOf(() =>
        store.db.transaction().execute((trx) => sql`select pg_advisory_xact_lock(hashtext(${name}))`.execute(trx)),
      );
    const [follower, owners] = [await before("chain_events"), await before("webhooks")];
    const now = await locksOf(() => store.db.transaction().execute(lockChainEvents));
    expect([...now]).to.include.deep.members([...follower]);
    expect([...(await locksOf(changeOwner))]).to.include.deep.members([...owners]);
  });
});
