/** Submissions in blocks that the follower passed with another hash: found, and nothing else visited. */
import { expect } from "chai";
import { CompiledQuery, sql } from "kysely";
import { reopenOrphans } from "../../../../relayer/chain/events/reorg";
import { openStore, type Store } from "../../../../relayer/store";
import { notingStatements } from "../../../support/statements";

const FOLLOWED = [10, 11, 12];
const hashOf = (block: number): string => `0x5${block}`;

describe("orphans of a reorg", () => {
  const seen = new Set<string>();
  let store: Store;

  before(async () => {
    store = await openStore({ around: notingStatements(seen) });
    await sql`insert into lanes (payer, address, next_nonce) values (1, 'lane', 0)`.execute(store.db);
    const values = FOLLOWED.map((number) => ({ number, hash: hashOf(number) }));
    await store.db.insertInto("followed_blocks").values(values).execute();
  });
  after(() => store.close());
  beforeEach(() => sql`delete from submissions`.execute(store.db));

  async function stateAfterwards(state: string, block: number, hash: string): Promise<unknown> {
    await sql`insert into submissions (id, kind, state, payer, nonce, block_number, block_hash)
      values ('s', 'add_group', ${state}, 1, 0, ${block}, ${hash})`.execute(store.db);
    await sql`insert into submission_attempts (hash, submission_id, does, raw, max_fee, priority_fee)
      values ('0x1', 's', 'write', '0x', 0, 0)`.execute(store.db);
    await reopenOrphans(store.db);
    return (await sql<{ state: string }>`select state from submissions`.execute(store.db)).rows[0]?.state;
  }

  for (const state of ["mined", "failed", "expired", "changed"])
    for (const [which, hash] of [
      ["lower", "0x4"],
      ["higher", "0x6"],
    ] as const)
      it(`are reopened: ${state}, in a block with a ${which} hash`, async () => {
        for (const block of FOLLOWED) {
          expect(await stateAfterwards(state, block, hash)).to.equal("sent");
          await sql`delete from submissions`.execute(store.db);
        }
      });

  it("are none of those in a canonical block, a block not followed, or a final one", async () => {
    for (const [state, block, hash] of [
      ["mined", 11, hashOf(11)],
      ["mined", 9, "0x4"],
      ["mined", 13, "0x6"],
      ["confirmed", 11, "0x4"],
    ] as const) {
      expect(await stateAfterwards(state, block, hash)).to.equal(state);
      await sql`delete from submissions`.execute(store.db);
    }
  });

  it("are none of those whose bytes retention has deleted", async () => {
    await sql`insert into submissions (id, kind, state, payer, nonce, block_number, block_hash)
      values ('s', 'add_group', 'failed', 1, 0, 11, '0x4')`.execute(store.db);
    await reopenOrphans(store.db);
    expect((await sql<{ state: string }>`select state from submissions`.execute(store.db)).rows[0]?.state).to.equal(
      "failed",
    );
  });

  it("are found by index, with a plan made while the table was empty", async () => {
    seen.clear();
    await reopenOrphans(store.db);
    const [text = ""] = seen;
    const { rows } = await store.db.executeQuery(CompiledQuery.raw(`explain ${text}`));
    const plan = rows.map((row) => Object.values(row as object)[0] as string).join("\n");
    expect(plan.match(/Index Cond: \(\(block_number = [^)]*\) AND \(block_hash [<>] [^)]*\)\)/g)).to.have.length(2);
    expect(plan).to.not.contain("Seq Scan on submissions");
  });
});
