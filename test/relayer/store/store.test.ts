import { expect } from "chai";
import { sql } from "kysely";
import { sharedStore } from "../../support/store";

describe("store", () => {
  it("opens and migrates", async () => {
    const { db } = await sharedStore();
    const row = await db
      .insertInto("instances")
      .values({ id: `probe-${Date.now()}` })
      .returningAll()
      .executeTakeFirstOrThrow();
    expect(row.renewed_at).to.be.instanceOf(Date);
    const { rows } = await sql<{ n: number }>`select 5::int8 as n`.execute(db);
    expect(rows[0]?.n).to.equal(5);
  });
});
