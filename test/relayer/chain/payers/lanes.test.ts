/** How many transactions a lane has in flight, as one instance counts them between two reads of the store. */
import { expect } from "chai";
import { Lanes } from "../../../../relayer/chain/payers/lanes";
import type { Store } from "../../../../relayer/store/index";
import { openTestStore } from "../../../support/testStore";

describe("the slots of a lane", () => {
  let store: Store;
  before(async () => {
    store = await openTestStore();
    const row = { payer: 1, address: `0x${"11".repeat(20)}`, next_nonce: 0, registered: true, balance_wei: "1000" };
    await store.db.insertInto("lanes").values(row).execute();
  });
  after(() => store?.close());

  const begun = (id: string, nonce: number): Promise<unknown> =>
    store.db
      .insertInto("transactions")
      .values({ id, purpose: "noop", state: "pending", payer: 1, nonce, gas_limit: 21_000 })
      .execute();
  const ended = (id: string): Promise<unknown> =>
    store.db.updateTable("transactions").set({ state: "mined" }).where("id", "=", id).execute();

  it("an outcome of an uncounted transaction frees no slot", async () => {
    const lanes = new Lanes({ db: store.db, maxInFlight: 1 });
    await lanes.all();
    // Another instance began it after the snapshot, and this one recorded its outcome.
    lanes.end(1);
    expect((await lanes.tryEnter(1n))?.payer).to.equal(1);
    lanes.leave(1, true);
    expect(await lanes.tryEnter(1n)).to.equal(undefined);
  });

  it("a slot is held while its transaction is being created, however often the store is read", async () => {
    const lanes = new Lanes({ db: store.db, maxInFlight: 1 });
    expect((await lanes.tryEnter(1n))?.payer).to.equal(1);
    for (let time = 0; time < 3; time++) expect(await lanes.tryEnter(1n)).to.equal(undefined);
    lanes.leave(1, false);
    expect((await lanes.tryEnter(1n))?.payer).to.equal(1);
  });

  it("a transaction in the store keeps its slot until its outcome", async () => {
    const lanes = new Lanes({ db: store.db, maxInFlight: 1 });
    await lanes.tryEnter(1n);
    await begun("one", 0);
    lanes.leave(1, true);
    for (let time = 0; time < 3; time++) expect(await lanes.tryEnter(1n)).to.equal(undefined);
    await ended("one");
    lanes.end(1);
    expect((await lanes.tryEnter(1n))?.payer).to.equal(1);
  });
});
