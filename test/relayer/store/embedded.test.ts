import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { sql } from "kysely";
import { openStore } from "../../../relayer/store/index";
import { openTestStore } from "../../support/testStore";

describe("the embedded store", () => {
  let folder: string;
  before(async function () {
    folder = await mkdtemp(join(tmpdir(), "store-"));
  });
  after(() => folder && rm(folder, { recursive: true, force: true }));

  it("keeps its folder across a restart, and migrates its schema only once", async function () {
    this.timeout(120_000);
    for (let time = 0; time < 2; time++) {
      const { db, close, kind } = await openStore({ dataDir: join(folder, "relayer") });
      expect(kind).to.equal("pglite");
      await db
        .insertInto("instances")
        .values({ id: `visit ${time}` })
        .execute();
      expect(await db.selectFrom("instances").select("id").orderBy("id").execute()).to.have.length(time + 1);
      await close();
    }
  });

  it("starts with a schema that a newer relayer has created, and leaves it unchanged", async function () {
    this.timeout(120_000);
    const dataDir = join(folder, "relayer");
    const newer = await openStore({ dataDir });
    await sql`insert into kysely_migration (name, timestamp) values ('9999_later', now()::text)`.execute(newer.db);
    await newer.close();
    const { db, close } = await openStore({ dataDir });
    const { rows } = await sql<{ name: string }>`select name from kysely_migration where name = '9999_later'`.execute(
      db,
    );
    expect(rows).to.have.length(1);
    await close();
  });

  it("is not migrated by tools: they report what is missing", async function () {
    this.timeout(120_000);
    const asked = await openStore({ schema: "asItIs" }).then(
      () => undefined,
      (error: unknown) => String(error),
    );
    expect(asked).to.match(/lacks 0000_schema.*: start a relayer of this version first/);
    await (await openStore({ dataDir: join(folder, "relayer"), schema: "asItIs" })).close();
  });

  it("does not grow by rows that change, once it is vacuumed", async function () {
    this.timeout(120_000);
    const { db, vacuum, close } = await openTestStore();
    await sql`insert into lanes (payer, address, next_nonce) values (1, 'lane', 0)`.execute(db);
    await sql`insert into transactions (id, purpose, state, payer, nonce, gas_limit)
      select n::text, 'writes', 'reserved', 1, n, 21000 from generate_series(1, 2000) n`.execute(db);
    const sizeAfterChanges = async (): Promise<number> => {
      // Each change of an indexed column adds an entry to every index.
      for (const state of ["pending", "mined", "reserved"]) {
        await sql`update transactions set state = ${state}, block_number = ${state.length}`.execute(db);
        await vacuum?.();
      }
      const size = sql<{ bytes: number }>`select pg_total_relation_size('transactions')::int8 as bytes`;
      return (await size.execute(db)).rows[0]?.bytes ?? 0;
    };
    const once = await sizeAfterChanges();
    for (let i = 0; i < 5; i++) await sizeAfterChanges();
    expect(await sizeAfterChanges()).to.be.at.most(once * 1.2);
    await close();
  });

  it("lets one process at a time into its folder, and tells the second", async function () {
    this.timeout(120_000);
    const first = await openStore({ dataDir: join(folder, "relayer") });
    const second = await openStore({ dataDir: join(folder, "relayer") }).then(
      () => undefined,
      (error: unknown) => String(error),
    );
    expect(second).to.match(/in use by another process: stop it, or choose another DATA_DIR/);
    await first.close();
  });
});
