/** A busy PostgreSQL: lock and statement time-outs and deadlocks are temporary, not the request's fault. */
import { expect } from "chai";
import { sql } from "kysely";
import { openStore, type Store } from "../../relayer/store";
import type { Trx } from "../../relayer/store/database";
import { startPostgres, type TestPostgres } from "../../scripts/dev/postgres";
import { refusal } from "../support/refusal";

describe("a statement that PostgreSQL aborts", function () {
  this.timeout(60_000);
  let postgres: TestPostgres;
  let store: Store;
  before(async () => {
    postgres = await startPostgres();
    store = await openStore({ databaseUrl: await postgres.database("timeouts") });
    await sql`insert into credit_accounts (account_id) values ('one'), ('other')`.execute(store.db);
  });
  after(async () => {
    await store?.close();
    await postgres?.stop();
  });

  const lock = (trx: Trx, account: string) =>
    sql`select from credit_accounts where account_id = ${account} for update`.execute(trx);
  const inTransaction = <T>(work: (trx: Trx) => Promise<T>): Promise<T> => store.db.transaction().execute(work);
  async function expectPassing(failing: Promise<unknown>): Promise<void> {
    const error = await refusal(failing);
    expect([error.code, error.status, error.retryable]).to.deep.equal(["database_unavailable", 503, true]);
  }

  it("because another transaction holds a lock too long is 503, retryable", async () => {
    await inTransaction(async (holder) => {
      await lock(holder, "one");
      await expectPassing(
        inTransaction(async (waiter) => {
          await sql`set local lock_timeout = '50ms'`.execute(waiter);
          await lock(waiter, "one");
        }),
      );
    });
  });

  it("because it takes too long is 503, retryable", async () => {
    await expectPassing(
      inTransaction(async (trx) => {
        await sql`set local statement_timeout = '50ms'`.execute(trx);
        await sql`select pg_sleep(5)`.execute(trx);
      }),
    );
  });

  it("to end a deadlock is 503, retryable; the other transaction continues", async () => {
    const crossing = async (first: string, second: string, arrived: () => void, others: Promise<void>): Promise<void> =>
      inTransaction(async (trx) => {
        await lock(trx, first);
        arrived();
        await others;
        await lock(trx, second);
      });
    let [oneIsThere, otherIsThere] = [(): void => undefined, (): void => undefined];
    const one = new Promise<void>((resolve) => (oneIsThere = resolve));
    const other = new Promise<void>((resolve) => (otherIsThere = resolve));
    const ended = await Promise.allSettled([
      crossing("one", "other", oneIsThere, other),
      crossing("other", "one", otherIsThere, one),
    ]);
    const failed = ended.filter((end): end is PromiseRejectedResult => end.status === "rejected");
    expect(failed).to.have.length(1);
    await expectPassing(Promise.reject(failed[0]?.reason as Error));
  });
});
