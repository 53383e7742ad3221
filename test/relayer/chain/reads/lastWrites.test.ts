/**
 * The block that reads must not be older than: that of the newest write in the store, queried once for all concurrent
 * reads.
 */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { LastWrites } from "../../../../relayer/chain/reads/lastWrites";
import type { Db } from "../../../../relayer/store/database";
import { failureOf } from "../../../support/refusal";
import { sharedStore } from "../../../support/store";

describe("the block of the last write", () => {
  let db: Db;
  let newest: number;
  before(async () => {
    ({ db } = await sharedStore());
    newest = (await new LastWrites(db, false).block()) + 1_000;
  });

  // Others share the store: their chains are shorter.
  const written: string[] = [];
  after(() => db.deleteFrom("account_turns").where("account_id", "in", written).execute());

  async function writeIn(block: number): Promise<void> {
    const account_id = `0x${randomBytes(32).toString("hex")}`;
    written.push(account_id);
    await db.insertInto("account_turns").values({ account_id, last_block: block }).execute();
  }

  it("is seen by a relayer that did not make it, with the next read", async () => {
    const other = new LastWrites(db, false);
    await writeIn(newest);
    expect(await other.block()).to.equal(newest);
    await writeIn(++newest);
    expect(await other.block()).to.equal(newest);
    await writeIn(newest - 5);
    expect(await other.block(), "an older one changes nothing").to.equal(newest);
  });

  it("is one query for all concurrent reads", async () => {
    let asked = 0;
    const selectFrom = (): unknown => ((asked += 1), db.selectFrom("account_turns"));
    const shared = new LastWrites({ selectFrom } as unknown as Db, false);
    const answers = await Promise.all(Array.from({ length: 50 }, () => shared.block()));
    expect([new Set(answers).size, asked]).to.deep.equal([1, 1]);
  });

  it("is asked for again after the store failed, also where nobody waited for it", async () => {
    let isFailing = true;
    const selectFrom = (): unknown => {
      if (isFailing) throw new Error("the store is too busy");
      return db.selectFrom("account_turns");
    };
    const alone = new LastWrites({ selectFrom } as unknown as Db, true);
    expect(await failureOf(alone.block())).to.be.instanceOf(Error);
    // Mocha fails a test whose rejections nobody handles.
    alone.note(1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    isFailing = false;
    expect(await alone.block()).to.equal(newest);
  });

  it("is known to a single relayer without another query, until a reorg may have reverted it", async () => {
    const alone = new LastWrites(db, true);
    expect(await alone.block()).to.equal(newest);
    alone.note(newest + 7);
    expect(await alone.block()).to.equal(newest + 7);
    alone.note(newest);
    expect(await alone.block()).to.equal(newest + 7);
    alone.forget();
    expect(await alone.block()).to.equal(newest);
  });
});
