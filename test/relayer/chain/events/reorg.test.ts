/**
 * A reorg deeper than the stored block hashes: the follower recovers, and writes that were considered final are on the
 * chain again.
 */
import { expect } from "chai";
import { sql } from "kysely";
import type { AccountId } from "../../../../protocol/ids";
import type { Chain } from "../../../../relayer/chain/types";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount } from "../../../support/chainBed";

const FINALITY = 4;

describe("reorgs deeper than the stored hashes", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let chain: Chain;
  before(async () => {
    bed = await ChainBed.start({ payers: 1 });
    ({ chain } = await bed.open({ tuning: { finalityDepth: FINALITY } }));
  });
  after(() => bed?.stop());

  async function confirmedWrites(account: AccountId, names: readonly string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const name of names)
      ids.push((await chain.submit(addGroup(account, name, { reserve: async () => undefined }))).submissionId);
    await bed.mine(FINALITY + 2);
    await bed.followed();
    for (const id of ids)
      await eventually("it is confirmed", async () => (await chain.submission(id as never))?.state === "confirmed");
    return ids;
  }

  it("reopen confirmed writes, which land again, keep their results and hold no nonce", async () => {
    const account = freshAccountId();
    await chain.submit(newAccount(account));
    await bed.followed();
    const ids = await confirmedWrites(account, ["one", "two", "three"]);
    const depth = 3 + FINALITY + 2;
    await bed.provider.send("anvil_reorg", [depth, []]);
    await bed.mine();
    await eventually("the writes are on the chain again", async () => (await bed.groupCount(account)) === 3);
    for (const id of ids)
      await eventually(
        "the submission has its outcome",
        async () => (await chain.submission(id as never))?.state === "mined",
      );
    expect((await chain.submit(addGroup(account, "four"))).result.group_id).to.equal("4");
    bed.expectToldOnce();
  });

  it("leave the events as on chain: retracted once, reported again once", async () => {
    const account = freshAccountId();
    await chain.submit(newAccount(account));
    await bed.followed();
    await confirmedWrites(account, ["a", "b"]);
    await bed.provider.send("anvil_reorg", [2 + FINALITY + 2, []]);
    await bed.mine();
    const entries = async (): Promise<string[]> =>
      (await chain.events(account, undefined, 100)).events
        .slice(1)
        .map(({ args, removed }) => `${removed ? "-" : "+"}${String(args.name)}`);
    await eventually("the events stand again", async () => (await entries()).length === 6);
    expect((await entries()).slice(0, 4)).to.deep.equal(["+a", "+b", "-b", "-a"]);
    expect((await entries()).slice(4)).to.have.members(["+a", "+b"]);
  });

  it("below every followed block restart at the contract's first block", async () => {
    // As a store of another chain: every hash in it differs.
    await sql`update followed_blocks set hash = replace(hash, '0x', '0xff')`.execute(bed.store.db);
    await sql`update chain_events set block_hash = replace(block_hash, '0x', '0xff')`.execute(bed.store.db);
    await bed.followed();
    const account = freshAccountId();
    expect((await chain.submit(newAccount(account))).result.api_key_hash).to.equal(account);
    await bed.followed();
    expect((await chain.events(account, undefined, 100)).events.map(({ name }) => name)).to.deep.equal([
      "AccountCreated",
    ]);
  });
});
