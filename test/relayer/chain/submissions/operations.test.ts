/** Requests to all relayers through the store, by an operator or by an expensive write. */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import {
  cancelSubmission,
  wantBalance,
  wantedBalance,
  wantedPayers,
  wantPayers,
} from "../../../../relayer/chain/submissions/operations";
import type { Db } from "../../../../relayer/store/database";
import { sharedStore } from "../../../support/store";

describe("operations on all relayers", () => {
  let db: Db;
  before(async () => ({ db } = await sharedStore()));
  beforeEach(() => db.deleteFrom("chain_settings").execute());
  after(() => db.deleteFrom("chain_settings").execute());

  it("set the number of payers; the last request counts", async () => {
    expect(await wantedPayers(db)).to.equal(0);
    await wantPayers(db, 4);
    await wantPayers(db, 2);
    expect(await wantedPayers(db)).to.equal(2);
  });

  it("keep the highest requested balance until it expires", async () => {
    expect(await wantedBalance(db)).to.equal(0n);
    await wantBalance(db, 10n ** 19n);
    await wantBalance(db, 5n);
    expect(await wantedBalance(db)).to.equal(10n ** 19n);
    const over = JSON.stringify({ wei: "10", until: Date.now() - 1 });
    await db.updateTable("chain_settings").set({ value: over }).where("name", "=", "wanted_balance").execute();
    expect(await wantedBalance(db)).to.equal(0n);
    await wantBalance(db, 5n);
    expect(await wantedBalance(db)).to.equal(5n);
  });

  it("give up a submission with its batch, and none that has its outcome", async () => {
    const [batch, member, ended] = [0, 1, 2].map(() => randomBytes(16).toString("hex")) as [string, string, string];
    await db.insertInto("lanes").values({ payer: 901, address: batch, next_nonce: 2 }).execute();
    await db
      .insertInto("submissions")
      .values([
        { id: batch, kind: "batch", state: "sent", payer: 901, nonce: 1 },
        { id: member, kind: "addGroup", state: "sent", payer: 901, batch_id: batch, place: 0 },
        { id: ended, kind: "addGroup", state: "confirmed", payer: 901, nonce: 0 },
      ])
      .execute();
    try {
      expect(await cancelSubmission(db, member)).to.equal(true);
      const rows = await db.selectFrom("submissions").select(["id", "cancelled"]).where("payer", "=", 901).execute();
      expect(rows.filter(({ cancelled }) => cancelled).map(({ id }) => id)).to.deep.equal([batch]);
      expect(await cancelSubmission(db, ended)).to.equal(false);
      expect(await cancelSubmission(db, randomBytes(16).toString("hex"))).to.equal(false);
    } finally {
      await db.deleteFrom("submissions").where("payer", "=", 901).execute();
      await db.deleteFrom("lanes").where("payer", "=", 901).execute();
    }
  });
});
