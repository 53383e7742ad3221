/**
 * Statements that move credit, each pair of them at once from two relayers over the same few accounts and keys: all
 * lock rows in one order, so that PostgreSQL never has to end one of them as a deadlock.
 */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import type { AccountId, ActionHash, Cid, Hash32, KeyId } from "../../protocol/ids";
import { setKeyLimits } from "../../relayer/credits/keyLimits";
import { hold, holdWrites, settleLate, close } from "../../relayer/credits/holds";
import { creditIntent, recordClaim, recordRefunded } from "../../relayer/credits/payments/books";
import { dropOldRuns, recordEnds } from "../../relayer/credits/runRecords";
import type { RunRecord, WriteEnd } from "../../relayer/credits/types";
import type { Executor } from "../../relayer/executor/client";
import { Webhooks } from "../../relayer/webhooks/registry";
import { dropOld } from "../../relayer/store/retention";
import { openStore, type Store } from "../../relayer/store";
import type { Db } from "../../relayer/store/database";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { expectBalancedBooks } from "../support/books";
import { count } from "../support/counts";
import { freshAccount, freshKey, fund, reservationsOf } from "../support/credits";
import { lockingFunctions } from "../support/lockingFunctions";

const ROUNDS = count(12, 200);
const AT_ONCE = 4;
const INSTANCE = "locks";
/** Limits that are never reached, so that each statement counts against them, too. */
const LIMITS = { centsPerDay: 90_000_000, origins: [] };
const DAY_MS = 86_400_000;
const RECORD: Omit<RunRecord, "accountId" | "keyId" | "startedAt"> = {
  requestId: "request",
  cid: "cid" as Cid,
  actionHash: "action" as ActionHash,
  durationMs: 1,
  outcome: "threw",
  errorMessage: "no",
  pkpsUsed: [],
  receiptSha256: "",
};

const TABLES = [
  ...["credit_accounts", "key_spending", "key_limits", "credit_reservations", "ledger_entries", "credit_settings"],
  ...["payments", "payment_claims", "payment_attempts", "budgets"],
  ...["run_ends", "run_records", "run_counts", "run_days"],
];
/** Each is one statement outside of any transaction, or changes only the row that its transaction has just made. */
const OF_ONE_ROW = [
  ...["ensureAccount", "ensureKey"].map((name) => `credits/accounts.ts ${name}`),
  "credits/creditAccounts.ts rememberEmail",
  "credits/payments/books.ts recordReceipt",
  ...["#beginAttempt", "#createForAttempt", "#customer"].map((name) => `credits/payments/intents.ts ${name}`),
  "credits/payments/reconcile.ts writeWatermark",
  "store/budgets.ts note",
];

interface Act {
  /** The functions whose statements it executes, as `lockingFunctions` names them. */
  readonly of: readonly string[];
  readonly run: (db: Db) => Promise<unknown>;
}

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
    for (const account of accounts) await setKeyLimits((stores[0] as Store).db, account, keyOf(account), LIMITS);
  });
  after(async () => {
    await Promise.all(stores.map((store) => store.close()));
    await postgres?.stop();
  });

  const some = <T>(all: readonly T[], number: number): T[] => [...all].sort(() => Math.random() - 0.5).slice(0, number);
  const keyOf = (account: AccountId): KeyId => keys[accounts.indexOf(account)] as KeyId;
  const id = (): string => randomBytes(16).toString("hex");
  let level = 0;

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
    return [...(await holdWrites(db, holds)).held];
  };
  const heldRun = async (db: Db): Promise<{ readonly runId: string; readonly record: RunRecord }> => {
    const [accountId] = some(accounts, 1) as [AccountId];
    const [runId, keyId] = [id(), keyOf(accountId)];
    await hold(db, {
      id: runId,
      kind: "run",
      accountId,
      keyId,
      capCents: 1_000_000_000,
      instanceId: INSTANCE,
      leastCents: 1,
      mostCents: 3,
      stepCents: 1,
    });
    const startedAt = new Date(Date.now() - Math.random() * 3 * DAY_MS);
    return { runId, record: { ...RECORD, accountId, keyId: keyId as string as Hash32, startedAt } };
  };

  const ACTS: Readonly<Record<string, Act>> = {
    "hold and end writes": {
      of: ["credits/holds.ts holdWrites", "credits/holds.ts closeWrites", "credits/reservations.ts bindWrites"],
      run: async (db) => {
        const ids = await heldWrites(db);
        const reservations = reservationsOf(db, INSTANCE);
        await db.transaction().execute((trx) => reservations.bindWrites(ids, trx));
        const ends = some(ids, ids.length).map((submissionId, i) => ({ submissionId, charged: i % 2 === 0 }));
        await db.transaction().execute((trx) => reservations.endWrites(ends, trx));
      },
    },
    "give writes back and end others": {
      of: ["credits/holds.ts giveBack", "credits/holds.ts lockEnds"],
      run: async (db) => {
        const reservations = reservationsOf(db, INSTANCE);
        const end = (ends: readonly WriteEnd[]): Promise<void> =>
          db.transaction().execute((trx) => reservations.endWrites(ends, trx));
        const charged = (await heldWrites(db)).map((submissionId) => ({ submissionId, charged: true }));
        await end(charged);
        const others = (await heldWrites(db)).map((submissionId) => ({ submissionId, charged: true }));
        await end([
          ...some(charged, 2).map(({ submissionId }) => ({ submissionId, charged: false, isUndone: true })),
          ...some(others, 2),
        ]);
        await end(others);
      },
    },
    "hold and settle a run": {
      of: [
        ...["tryHold", "keyPart", "withLimits", "close", "posted", "POSTED_TO_KEY"].map(
          (name) => `credits/holds.ts ${name}`,
        ),
        "credits/runRecords.ts recordedBy",
      ],
      run: async (db) => {
        const { runId, record } = await heldRun(db);
        await close(db, { id: runId, state: "settled", costCents: 2, record });
      },
    },
    "give a run back and settle it late": {
      of: ["credits/holds.ts settleLate"],
      run: async (db) => {
        const { runId, record } = await heldRun(db);
        await close(db, { id: runId, state: "released", costCents: 0, only: "orphaned" });
        await settleLate(db, { id: runId, state: "settled", costCents: 2, record });
      },
    },
    "credit a payment and take it back": {
      of: [
        "credits/ledger.ts post",
        ...["creditIntent", "lockPayment", "recordClaim", "recordRefunded", "settleDebit"].map(
          (name) => `credits/payments/books.ts ${name}`,
        ),
      ],
      run: async (db) => {
        const [accountId] = some(accounts, 1) as [AccountId];
        const intentId = `pi_${id()}`;
        const claim = {
          claimId: id(),
          kind: "dispute",
          intentId,
          amountCents: 5,
          withdrawn: false,
          toldAt: 1,
        } as const;
        await Promise.all([
          creditIntent(db, { accountId, intentId, amountCents: 5 }),
          recordRefunded(db, intentId, 2),
          recordClaim(db, claim),
        ]);
      },
    },
    "limit keys": {
      of: ["credits/keyLimits.ts setKeyLimits"],
      run: async (db) => {
        for (const account of some(accounts, 3)) await setKeyLimits(db, account, keyOf(account), LIMITS);
      },
    },
    // Its level for low credit is kept in its account's row, by a trigger.
    "make a webhook and delete it": {
      of: [],
      run: async (db) => {
        const [accountId] = some(accounts, 1) as [AccountId];
        const executor = { call: async () => ({}) } as unknown as Executor;
        const webhooks = new Webhooks({ db, executor, httpsOnly: false });
        const { id: webhook } = await webhooks.create({ accountId }, { credit_low_cents: ++level });
        await webhooks.update({ accountId }, webhook, { credit_low_cents: ++level });
        await webhooks.delete(accountId, webhook);
      },
    },
    "record runs": { of: ["credits/runRecords.ts recordSome"], run: (db) => recordEnds(db) },
    "drop old rows": {
      of: [
        ...["dropDays", "dropSome", "forgetMessages"].map((name) => `credits/runRecords.ts ${name}`),
        "store/retention.ts closedReservations",
      ],
      run: async (db) => {
        await dropOldRuns(db, 1, 0);
        await dropOld(db, { detailDays: 0, runRecordsDays: 1 });
      },
    },
  };

  it("are all tried here, but for those that lock one row and wait for no other while they hold it", () => {
    const tried = Object.values(ACTS).flatMap(({ of }) => of);
    expect([...tried, ...OF_ONE_ROW].sort()).to.deep.equal(lockingFunctions(TABLES));
  });

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
          const acts = Array.from({ length: AT_ONCE }, (_, i) => ACTS[i % 2 === 0 ? one : other]?.run);
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
