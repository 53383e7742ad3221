/**
 * Connections to a real PostgreSQL: prepared statements, transactions that begin with their first statement, and schema
 * changes by a newer relayer.
 */
import { expect } from "chai";
import { Kysely, PostgresDialect, sql } from "kysely";
import type { MeasuredPool } from "../../../relayer/store/pool";
import { openPostgresPool } from "../../../relayer/store/postgresPool";
import { testDatabaseUrl } from "../../support/store";

interface Tables {
  things: { id: number; name: string | null };
}

const onPostgres = (name: string, suite: () => void): unknown => testDatabaseUrl !== undefined && describe(name, suite);

onPostgres("connections to PostgreSQL", () => {
  let pool: MeasuredPool;
  let db: Kysely<Tables>;
  beforeEach(async () => {
    pool = openPostgresPool({ databaseUrl: testDatabaseUrl ?? "", maxConnections: 1, onIdleError: () => undefined });
    db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
    await sql`drop table if exists things`.execute(db);
    await sql`create table things (id int primary key, name text)`.execute(db);
  });
  afterEach(async () => {
    await sql`drop table things`.execute(db);
    await db.destroy();
  });

  const add = (id: number): Promise<unknown> =>
    db
      .insertInto("things")
      .values({ id, name: `thing ${id}` })
      .execute();
  const find = (id: number): Promise<unknown> =>
    db.selectFrom("things").selectAll().where("id", "=", id).executeTakeFirst();
  const named = async (): Promise<number> =>
    (await sql<{ n: number }>`select count(*)::int as n from pg_prepared_statements`.execute(db)).rows[0]?.n ?? 0;

  it("name repeated statements, and no others", async () => {
    for (let id = 0; id < 5; id++) await add(id);
    await find(1);
    expect(await named()).to.equal(1);
    for (let n = 1; n < 300; n++) await sql.raw(`select ${n}`).execute(db);
    for (let n = 1; n < 60; n++)
      await db
        .selectFrom("things")
        .select("id")
        .where(
          "id",
          "in",
          Array.from({ length: n }, (_, id) => id),
        )
        .execute();
    expect(await named()).to.equal(1);
  });

  it("commit or roll back a transaction as a whole, also one that fails in its first statement", async () => {
    await db.transaction().execute(async (trx) => trx.insertInto("things").values({ id: 1, name: null }).execute());
    const failing = db.transaction().execute(async (trx) => {
      await trx.insertInto("things").values({ id: 2, name: null }).execute();
      await trx.insertInto("things").values({ id: 1, name: null }).execute();
    });
    expect(await failing.catch((error: { code: string }) => error.code)).to.equal("23505");
    const first = db
      .transaction()
      .execute(async (trx) => trx.insertInto("things").values({ id: 1, name: null }).execute());
    expect(await first.catch((error: { code: string }) => error.code)).to.equal("23505");
    await db.transaction().execute(async () => undefined);
    expect(await db.selectFrom("things").select("id").execute()).to.deep.equal([{ id: 1 }]);
    expect(pool.figures()).to.deep.include({ busy: 0, waiting: 0 });
  });

  it("recover when a newer relayer adds a column; inside a transaction, at the next attempt", async () => {
    for (let id = 0; id < 4; id++) await add(id);
    for (let time = 0; time < 4; time++) await find(1);
    await sql`alter table things add column size int`.execute(db);
    expect(await find(1)).to.deep.equal({ id: 1, name: "thing 1", size: null });
    for (let time = 0; time < 4; time++) await find(1);
    await sql`alter table things add column weight int`.execute(db);
    const inside = (): Promise<unknown> =>
      db.transaction().execute((trx) => trx.selectFrom("things").selectAll().where("id", "=", 1).executeTakeFirst());
    expect(await inside().catch((error: { code: string }) => error.code)).to.equal("database_unavailable");
    expect(await inside()).to.deep.equal({ id: 1, name: "thing 1", size: null, weight: null });
  });
});
