/** Leases on an embedded store, which belongs to one process. */
import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { Instance } from "../../../relayer/store/instance";
import type { Store } from "../../../relayer/store";
import type { SessionLock } from "../../../relayer/store/sessionLock";
import { expectInTime, itInTime } from "../../support/inTime";
import { openTestStore } from "../../support/testStore";

describe("an instance on an embedded store", () => {
  let store: Store;
  before(async function () {
    this.timeout(60_000);
    store = await openTestStore();
  });
  after(() => store?.close());

  itInTime("considers the previous process dead, and waits for no lease", async () => {
    const { db } = store;
    const id = randomUUID();
    await db.insertInto("instances").values({ id }).execute();
    const begun = Date.now();
    const instance = new Instance({ db, storeIsOurs: true, onError: () => undefined });
    await instance.start();
    expect(await db.selectFrom("instances").select("id").execute()).to.deep.equal([{ id: instance.id }]);
    expectInTime(Date.now() - begun, 1_000);
    await instance.stop();
  });

  it("renews its lease while its lock cannot be taken, and reports that it holds none", async function () {
    this.timeout(10_000);
    const { db } = store;
    const never = { hold: () => new Promise<boolean>(() => undefined), close: () => Promise.resolve() };
    const lockOf = (): SessionLock => never as unknown as SessionLock;
    const instance = new Instance({ db, storeIsOurs: true, lockOf, renewalMs: 600, onError: () => undefined });
    await instance.start();
    const seen = async () =>
      db
        .selectFrom("instances")
        .where("id", "=", instance.id)
        .select(["has_lock", "renewed_at"])
        .executeTakeFirstOrThrow();
    const first = await seen();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const later = await seen();
    expect(later.has_lock).to.equal(false);
    expect(later.renewed_at.getTime()).to.be.above(first.renewed_at.getTime());
    await instance.stop();
  });

  itInTime("does not accumulate renewals that take longer than their interval", async function () {
    this.timeout(20_000);
    const { db } = store;
    let holds = 0;
    const never = {
      hold: () => {
        holds += 1;
        return new Promise<boolean>(() => undefined);
      },
      close: () => Promise.resolve(),
    };
    const lockOf = (): SessionLock => never as unknown as SessionLock;
    const instance = new Instance({ db, storeIsOurs: true, lockOf, renewalMs: 5, onError: () => undefined });
    await instance.start();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const begun = Date.now();
    const before = holds;
    await instance.stop();
    expectInTime(Date.now() - begun, 2_000);
    expect(holds - before).to.be.at.most(1);
  });
});
