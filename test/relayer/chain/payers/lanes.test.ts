/** How many transactions a lane has under way, as one instance counts them between two looks into the store. */
import { expect } from "chai";
import { Lanes } from "../../../../relayer/chain/payers/lanes";
import { openStore, type Store } from "../../../../relayer/store/index";

describe("the places of a lane", () => {
  let store: Store;
  before(async () => {
    store = await openStore({});
    const row = { payer: 1, address: `0x${"11".repeat(20)}`, next_nonce: 0, registered: true, balance_wei: "1000" };
    await store.db.insertInto("lanes").values(row).execute();
  });
  after(() => store?.close());

  const begun = (id: string, nonce: number): Promise<unknown> =>
    store.db
      .insertInto("submissions")
      .values({ id, kind: "filler", state: "sent", payer: 1, nonce, gas_limit: 21_000, cancelled: true })
      .execute();
  const ended = (id: string): Promise<unknown> =>
    store.db.updateTable("submissions").set({ state: "mined" }).where("id", "=", id).execute();

  it("an outcome of a transaction that was never counted makes no room", async () => {
    const lanes = new Lanes({ db: store.db, maxInFlight: 1 });
    await lanes.all();
    // It began on another instance after the snapshot, and this one carried it to its outcome.
    lanes.end(1);
    expect((await lanes.tryEnter(1n))?.payer).to.equal(1);
    lanes.begin(1);
    expect(await lanes.tryEnter(1n)).to.equal(undefined);
  });

  it("a place is held while its transaction is being made, however often the store is read", async () => {
    const lanes = new Lanes({ db: store.db, maxInFlight: 1 });
    expect((await lanes.tryEnter(1n))?.payer).to.equal(1);
    for (let time = 0; time < 3; time++) expect(await lanes.tryEnter(1n)).to.equal(undefined);
    lanes.leave(1);
    expect((await lanes.tryEnter(1n))?.payer).to.equal(1);
  });

  it("a transaction in the store keeps its place until it ends", async () => {
    const lanes = new Lanes({ db: store.db, maxInFlight: 1 });
    await lanes.tryEnter(1n);
    await begun("one", 0);
    lanes.begin(1);
    for (let time = 0; time < 3; time++) expect(await lanes.tryEnter(1n)).to.equal(undefined);
    await ended("one");
    lanes.end(1);
    expect((await lanes.tryEnter(1n))?.payer).to.equal(1);
  });
});
