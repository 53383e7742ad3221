/**
 * Statements that move credit, each pair of them at once from two relayers over the same few accounts and keys: all
 * lock rows in one order, so that PostgreSQL never has to end one of them as a deadlock.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import type { AccountId, KeyId } from "../../protocol/ids";
import { setKeyLimits } from "../../relayer/credits/keyLimits";
import { post } from "../../relayer/credits/ledger";
import { closeWrites, hold, holdWrites, settleLate, close } from "../../relayer/credits/holds";
import { dropOldRuns, recordEnds } from "../../relayer/credits/runRecords";
import { dropOld } from "../../relayer/store/retention";
import { openStore, type Store } from "../../relayer/store";
import type { Db } from "../../relayer/store/database";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { expectBalancedBooks } from "../support/books";
import { count } from "../support/counts";
import { freshAccount, freshKey, fund } from "../support/credits";

const ROUNDS = count(12, 200);
const AT_ONCE = 4;
const INSTANCE = "locks";

describe("statements that move credit", function () {
  this.timeout(600_000);
  const accounts = Array.from({ length: 5 }, () => freshAccount());
  const keys = accounts.map(() => freshKey());
  let postgres: TestPostgres;
  let stores: Store[] = [];
  before(async () => {
    postgres = await startPostgres();
    const databaseUrl = await postgres.database("locks");
    stores = [await openStore({ databaseUrl }), await openStore({ databaseUrl })];
    const { db } = stores[0] as Store;
    await sql`alter database locks set deadlock_timeout = '10ms'`.execute(db);
    await Promise.all(stores.map((store) => store.close()));
    stores = [await openStore({ databaseUrl }), await openStore({ databaseUrl })];
    for (const account of accounts) await fund((stores[0] as Store).db, account, 1_000_000);
    for (const key of keys) await (stores[0] as Store).db.insertInto("key_spending").values({ key_id: key }).execute();
    // Limits that are never reached, so that each statement counts against them, too.
    for (const [at, account] of accounts.entries())
      await setKeyLimits((stores[0] as Store).db, account, keys[at] as KeyId, { centsPerDay: 90_000_000, origins: [] });
  });
  after(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await postgres?.stop();
  });

  const some = <T>(all: readonly T[], number: number): T[] => [...all].sort(() => Math.random() - 0.5).slice(0, number);
  const keyOf = (account: AccountId): KeyId => keys[accounts.indexOf(account)] as KeyId;
  const id = (): string => randomBytes(16).toString("hex");

  /** Writes of several accounts, by a key of each. */
  const heldWrites = async (db: Db): Promise<string[]> => {
    const holds = some(accounts, 4).map((accountId) => ({
      id: id(),
      accountId,
      keyId: keyOf(accountId),
      capCents: 1_000_000_000,
      cents: 1,
      instanceId: INSTANCE,
    }));
    return [...(await holdWrites(db, holds))];
  };
  const heldRun = async (db: Db): Promise<string> => {
    const [accountId] = some(accounts, 1) as [AccountId];
    const runId = id();
    await hold(db, {
      id: runId,
      kind: "run",
      accountId,
      keyId: keyOf(accountId),
      capCents: 1_000_000_000,
      instanceId: INSTANCE,
      leastCents: 1,
      mostCents: 3,
      stepCents: 1,
    });
    return runId;
  };

  const ACTS: Readonly<Record<string, (db: Db) => Promise<unknown>>> = {
    "hold and end writes": async (db) => {
      const ids = await heldWrites(db);
      const ends = some(ids, ids.length).map((submissionId, i) => ({ submissionId, charged: i % 2 === 0 }));
      await db.transaction().execute((trx) => closeWrites(trx, ends));
    },
    "hold and settle a run": async (db) => {
      const runId = await heldRun(db);
      await close(db, { id: runId, state: "settled", costCents: 2 });
    },
    "give a run back and settle it late": async (db) => {
      const runId = await heldRun(db);
      await close(db, { id: runId, state: "released", costCents: 0, only: "orphaned" });
      await settleLate(db, { id: runId, state: "settled", costCents: 2 });
    },
    "post a payment": async (db) => {
      const [accountId] = some(accounts, 1) as [AccountId];
      const key = id();
      const posting = { accountId, kind: "top_up", amountCents: 5, reference: key, postingKey: key } as const;
      await db.transaction().execute((trx) => post(trx, posting));
    },
    "record runs": (db) => recordEnds(db),
    "drop old rows": async (db) => {
      await dropOldRuns(db, 1, 0);
      await dropOld(db, { detailDays: 0, runRecordsDays: 1 });
    },
  };

  const deadlocks = async (): Promise<number> => {
    const { rows } = await sql<{ deadlocks: number }>`
      select deadlocks::int4 from pg_stat_database where datname = current_database()`.execute((stores[0] as Store).db);
    return rows[0]?.deadlocks ?? 0;
  };

  const names = Object.keys(ACTS);
  for (const [index, one] of names.entries()) {
    it(`${one}: no deadlock with any other`, async () => {
      for (const other of names.slice(index)) {
        const before = await deadlocks();
        for (let round = 0; round < ROUNDS; round++) {
          const acts = Array.from({ length: AT_ONCE }, (_, i) => ACTS[i % 2 === 0 ? one : other]);
          const ended = await Promise.allSettled(acts.map((act, i) => act?.((stores[i % 2] as Store).db)));
          const failed = ended.find((end) => end.status === "rejected");
          expect(failed?.reason, `${one}, ${other}`).to.equal(undefined);
        }
        expect(await deadlocks(), `${one}, ${other}`).to.equal(before);
      }
      await expectBalancedBooks((stores[0] as Store).db);
    });
  }
});
