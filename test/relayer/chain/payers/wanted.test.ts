/** Requests to all relayers through the store, by an operator or by an expensive write. */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { wantBalance, wantedBalance, wantedPayers, wantPayers } from "../../../../relayer/chain/payers/wanted";
import { cancelSubmission } from "../../../../relayer/chain/submissions/transactions";
import type { Db } from "../../../../relayer/store/database";
import { sharedStore } from "../../../support/store";
import { insertWrite } from "../../../support/writeRows";

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

  it("abandon the transaction that carries a write, and none that has its outcome", async () => {
    const [write, ended] = [0, 1].map(() => randomBytes(16).toString("hex")) as [string, string];
    await db.insertInto("lanes").values({ payer: 901, address: write, next_nonce: 2 }).execute();
    await insertWrite(db, { id: write, account: write, payer: 901, nonce: 1, state: "pending" });
    await insertWrite(db, { id: ended, account: ended, payer: 901, nonce: 0, state: "confirmed" });
    try {
      expect(await cancelSubmission(db, write)).to.equal(true);
      const rows = await db.selectFrom("transactions").select(["nonce", "abandon"]).where("payer", "=", 901).execute();
      expect(rows.filter(({ abandon }) => abandon).map(({ nonce }) => nonce)).to.deep.equal([1]);
      expect(await cancelSubmission(db, ended)).to.equal(false);
      expect(await cancelSubmission(db, randomBytes(16).toString("hex"))).to.equal(false);
    } finally {
      await db.deleteFrom("writes").where("id", "in", [write, ended]).execute();
      await db.deleteFrom("transactions").where("payer", "=", 901).execute();
      await db.deleteFrom("lanes").where("payer", "=", 901).execute();
    }
  });
});
