/** Work done by one instance for all: it keeps its lease while it lives, and another takes it over afterwards. */
import { expect } from "chai";
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { Leases } from "../../../relayer/chain/leases";
import type { Store } from "../../../relayer/store/index";
import { sharedStore } from "../../support/store";

describe("leases", () => {
  let store: Store;
  const ids: string[] = [];
  before(async () => (store = await sharedStore()));
  beforeEach(async () => {
    await sql`update chain_duties set instance_id = null`.execute(store.db);
  });
  after(() => store.db.deleteFrom("instances").where("id", "in", ids).execute());

  async function living(): Promise<{ readonly id: string; readonly leases: Leases }> {
    const id = randomUUID();
    ids.push(id);
    await sql`insert into instances (id) values (${id})`.execute(store.db);
    return { id, leases: new Leases(store.db, id) };
  }

  it("are held by one instance at a time, which may ask again", async () => {
    const [one, other] = [await living(), await living()];
    expect(await one.leases.claim("follow_events")).to.equal(true);
    expect(await other.leases.claim("follow_events")).to.equal(false);
    expect(await one.leases.claim("follow_events")).to.equal(true);
    expect(await other.leases.claim("keep_lanes"), "each kind of work by itself").to.equal(true);
  });

  it("go to exactly one of many concurrent requests", async () => {
    const all = await Promise.all(Array.from({ length: 6 }, living));
    const claims = await Promise.all(all.map(({ leases }) => leases.claim("keep_lanes")));
    expect(claims.filter(Boolean)).to.have.length(1);
  });

  it("are free once released, and once their holder's own lease has expired", async () => {
    const [one, other] = [await living(), await living()];
    await one.leases.claim("follow_events");
    await one.leases.release();
    expect(await other.leases.claim("follow_events")).to.equal(true);
    await sql`update instances set renewed_at = now() - interval '1 minute' where id = ${other.id}`.execute(store.db);
    expect(await one.leases.claim("follow_events")).to.equal(true);
    await other.leases.release();
    const third = await living();
    expect(await third.leases.claim("follow_events"), "who lost it gives nothing back").to.equal(false);
  });
});
