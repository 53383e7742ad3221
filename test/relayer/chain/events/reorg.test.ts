/**
 * A chain that drops final blocks: nothing is taken back by itself, `/ready` says so, and an operator's command lets
 * the follower continue.
 */
import { expect } from "chai";
import type { AccountId } from "../../../../protocol/ids";
import { rewind } from "../../../../relayer/chain/events/reorg";
import type { Chain } from "../../../../relayer/chain/types";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount } from "../../../support/chainBed";

const FINALITY = 4;

describe("reorgs deeper than finality", function () {
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
      ids.push((await chain.submit(addGroup(account, name, { reserve: async () => true }))).submissionId);
    await bed.mine(FINALITY + 2);
    await bed.followed();
    for (const id of ids)
      await eventually("it is confirmed", async () => (await chain.submission(id as never))?.state === "confirmed");
    return ids;
  }

  /** Drops the newest blocks; returns the newest of those that remain. */
  async function dropBlocks(depth: number): Promise<{ number: number; hash: string }> {
    const number = (await bed.provider.getBlockNumber()) - depth;
    await bed.provider.send("anvil_reorg", [depth, []]);
    await bed.mine();
    return { number, hash: (await bed.provider.getBlock(number))?.hash ?? "" };
  }

  const standsStill = async (): Promise<boolean> =>
    (await chain.ready()).problems.some((problem) => /rewinds/.test(problem));

  it("stop the follower and take nothing back; after a rewind the writes are executed again", async () => {
    const account = freshAccountId();
    await chain.submit(newAccount(account));
    await bed.followed();
    const ids = await confirmedWrites(account, ["one", "two", "three"]);
    const fork = await dropBlocks(3 + FINALITY + 2);
    await eventually("it says that it stands still", standsStill);
    for (const id of ids) expect((await chain.submission(id as never))?.state).to.equal("confirmed");
    expect((await chain.endpointHeads(1_000)).map(({ isOfOtherChain }) => isOfOtherChain)).to.deep.equal([true]);
    await rewind(bed.store.db, fork);
    await eventually("the writes are on the chain again", async () => (await bed.groupCount(account)) === 3);
    for (const id of ids)
      await eventually(
        "the submission has its outcome",
        async () => (await chain.submission(id as never))?.state === "mined",
      );
    expect((await chain.submit(addGroup(account, "four"))).result.group_id).to.equal("4");
    const { events } = await chain.events(account, undefined, 100);
    const entries = events.map(({ args, removed }) => `${removed ? "-" : "+"}${String(args.name)}`).slice(1);
    expect(entries.slice(0, 6)).to.deep.equal(["+one", "+two", "+three", "-three", "-two", "-one"]);
    expect(entries.slice(6)).to.have.members(["+one", "+two", "+three", "+four"]);
    bed.expectToldOnce();
  });

  it("leave alone what retention has emptied: it could not be finished", async () => {
    const account = freshAccountId();
    await chain.submit(newAccount(account));
    await bed.followed();
    const [id = ""] = await confirmedWrites(account, ["emptied"]);
    const carrier = bed.store.db.selectFrom("writes").select("transaction_id").where("id", "=", id);
    await bed.store.db.deleteFrom("attempts").where("transaction_id", "=", carrier).execute();
    const fork = await dropBlocks(1 + FINALITY + 2);
    await eventually("it says that it stands still", standsStill);
    await rewind(bed.store.db, fork);
    await bed.followed();
    expect((await chain.submission(id as never))?.state).to.equal("confirmed");
    await eventually("it serves again", async () => (await chain.ready()).ready);
  });
});
