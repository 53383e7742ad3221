import { expect } from "chai";
import { sql } from "kysely";
import { openStore } from "../../../relayer/store/index";
import { expectRefusal } from "../../support/refusal";
import { sharedStore } from "../../support/store";

describe("the store", () => {
  it("returns every type of value in one form on both databases", async () => {
    const { db } = await sharedStore();
    const { rows } = await sql`select 5::int8 as int8, 9007199254740991::int8 as most,
        340282366920938463463374607431768211456::numeric as wide,
      '\\xdeadbeef'::bytea as bytes, now() as at, ${JSON.stringify([1, { a: null }])}::jsonb as json,
        true as yes`.execute(db);
    const [row] = rows as [Record<string, unknown>];
    expect(row).to.deep.include({
      int8: 5,
      most: Number.MAX_SAFE_INTEGER,
      wide: "340282366920938463463374607431768211456",
      json: [1, { a: null }],
      yes: true,
    });
    expect(row.at).to.be.instanceOf(Date);
    expect(Buffer.isBuffer(row.bytes) && row.bytes.toString("hex")).to.equal("deadbeef");
  });

  it("refuses to return an int8 beyond a safe integer, rather than rounding it", async () => {
    const { db } = await sharedStore();
    const error = await sql`select 9007199254740993::int8 as n`.execute(db).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).to.be.instanceOf(RangeError);
  });

  it("rolls a transaction back as a whole", async () => {
    const { db } = await sharedStore();
    const id = `rollback ${Date.now()}`;
    const failing = db.transaction().execute(async (trx) => {
      await trx.insertInto("instances").values({ id }).execute();
      throw new Error("on second thoughts");
    });
    await failing.catch(() => undefined);
    expect(await db.selectFrom("instances").where("id", "=", id).execute()).to.deep.equal([]);
  });

  it("serves many concurrent transactions to their end", async () => {
    const { db } = await sharedStore();
    const id = `counter ${Date.now()}`;
    await db.insertInto("credit_settings").values({ name: id, value: "0" }).execute();
    const increment = (): Promise<unknown> =>
      db.transaction().execute(async (trx) => {
        const row = await trx
          .selectFrom("credit_settings")
          .select("value")
          .where("name", "=", id)
          .forUpdate()
          .executeTakeFirstOrThrow();
        await trx
          .updateTable("credit_settings")
          .set({ value: JSON.stringify(Number(row.value) + 1) })
          .where("name", "=", id)
          .execute();
      });
    await Promise.all(Array.from({ length: 40 }, increment));
    expect(
      (await db.selectFrom("credit_settings").select("value").where("name", "=", id).executeTakeFirstOrThrow()).value,
    ).to.equal(40);
  });
});

describe("an unreachable PostgreSQL", () => {
  it("is reported as database_unavailable, retryable", async () => {
    const error = await expectRefusal(
      openStore({ databaseUrl: "postgresql://app@127.0.0.1:1/none" }),
      "database_unavailable",
    );
    expect(error.status).to.equal(503);
    expect(error.retryable).to.equal(true);
  });
});
