/** The block by which the relayer knows its chain again. */
import { expect } from "chai";
import { sql } from "kysely";
import { ZERO_ADDRESS } from "../../../../protocol/ids";
import { Follower } from "../../../../relayer/chain/events/follower";
import { sharedStore } from "../../../support/store";

const DEPTH = 64;

describe("the block that every endpoint of the chain has", () => {
  /** Of a follower that has kept all blocks up to this one. */
  async function numberAt(head: number): Promise<number | undefined> {
    const { db } = await sharedStore();
    const undone = new Error("undone");
    let number: number | undefined;
    const asked = db.transaction().execute(async (trx) => {
      await trx.deleteFrom("followed_blocks").execute();
      await sql`insert into followed_blocks (number, hash)
        select n, '0x' || lpad(to_hex(n), 64, '0') from generate_series(0, ${head}::int) n`.execute(trx);
      const follower = new Follower({ db: trx, finalityDepth: DEPTH, contractAddress: ZERO_ADDRESS } as never);
      number = (await follower.finalBlock())?.number;
      throw undone;
    });
    await asked.catch((error: unknown) => expect(error).to.equal(undone));
    return number;
  }

  it("is the oldest one kept that is final", async () => {
    expect(await numberAt(DEPTH - 1)).to.equal(undefined);
    expect(await numberAt(DEPTH + 1)).to.equal(1);
  });

  it("is never the first of all, which a development node makes again when it loads its stored chain", async () => {
    expect(await numberAt(DEPTH)).to.equal(undefined);
  });
});
