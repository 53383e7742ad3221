/** Reorgs: writes and events move to the winning chain, and clients can see what changed. */
import { expect } from "chai";
import { toBeHex } from "ethers";
import type { AccountId } from "../../../../protocol/ids";
import type { AccountEvent, Chain } from "../../../../relayer/chain/types";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount, request } from "../../../support/chainBed";
import { refusal } from "../../../support/refusal";
import { refuseWith } from "../../../support/rpcProxy";

describe("reorgs", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let chain: Chain;
  before(async () => {
    bed = await ChainBed.start({ payers: 1 });
    ({ chain } = await bed.open());
  });
  after(() => bed?.stop());
  afterEach(async () => {
    bed.expectToldOnce();
    const { lanes } = await chain.stats();
    for (const { payer, address } of lanes.filter((lane) => lane.payer > 0))
      expect(await bed.nextNonce(payer)).to.equal(await bed.provider.getTransactionCount(address));
  });

  const reserve = async (): Promise<boolean> => true;

  async function account(): Promise<AccountId> {
    const id = freshAccountId();
    await chain.submit(newAccount(id));
    return id;
  }

  const allEvents = async (id: AccountId): Promise<readonly AccountEvent[]> =>
    (await chain.events(id, undefined, 1_000)).events;

  for (const depth of [1, 3]) {
    it(`A6: a write whose block is reorged away (depth ${depth}) is sent again and keeps its result`, async () => {
      const id = await account();
      const answers = [];
      for (let index = 0; index < depth; index++)
        answers.push(await chain.submit(addGroup(id, `g${index}`, { reserve })));
      await bed.reorg(depth);
      await eventually("the writes are on the chain again", async () => (await bed.groupCount(id)) === depth);
      for (const { submissionId, result } of answers) {
        await eventually(
          "the submission is mined again",
          async () => (await chain.submission(submissionId))?.state === "mined",
        );
        const now = await chain.submission(submissionId);
        expect(now?.result).to.deep.equal(result);
        expect(now?.before).to.deep.equal({ result });
      }
      expect((await chain.groups(id, { offset: 0, limit: 10 })).total).to.equal(depth);
    });
  }

  it("A6: a write with another outcome after the reorg becomes `changed` and shows both results", async () => {
    const id = await account();
    await bed.registerPayers(8, 8);
    const other = bed.executor.wallet(8).connect(bed.provider);
    await bed.followed();
    const { submissionId, result } = await chain.submit(addGroup(id, "answered first", { reserve }));
    expect(result.group_id).to.equal("1");
    await bed.followed();
    // On the winning chain another write comes first.
    await bed.provider.send("evm_setAutomine", [false]);
    const rival = await bed.contract.connect(other).addGroup.populateTransaction(id, "rival", "", [], []);
    const raw = await bed.executor.wallet(8).signTransaction({
      ...rival,
      type: 2,
      chainId: 31_337,
      nonce: await bed.provider.getTransactionCount(other.address),
      gasLimit: 300_000,
      maxFeePerGas: 10n ** 11n,
      maxPriorityFeePerGas: 10n ** 11n,
    });
    await bed.provider.send("anvil_reorg", [1, [[raw, 0]]]);
    await bed.provider.send("evm_setAutomine", [true]);
    await bed.mine();
    await eventually("the submission changed", async () => (await chain.submission(submissionId))?.state === "changed");
    const now = await chain.submission(submissionId);
    expect(now?.result?.group_id).to.equal("2");
    expect(now?.before?.result?.group_id).to.equal("1");
  });

  it("are taken back although the blocks below them cannot be read", async () => {
    const id = await account();
    await bed.mine(10);
    const { submissionId } = await chain.submit(addGroup(id, "moves", { reserve }));
    await bed.followed();
    const newest = await bed.provider.getBlockNumber();
    const heal = bed.proxy.inject((call, forward) =>
      call.method === "eth_getBlockByNumber" && Number(call.params[0]) < newest - 3
        ? refuseWith("internal error")(call, forward)
        : undefined,
    );
    try {
      await bed.reorg();
      await bed.followed();
      await eventually("the write is on the chain again", async () => (await bed.groupCount(id)) === 1);
      await eventually(
        "the submission is mined again",
        async () => (await chain.submission(submissionId))?.state === "mined",
      );
    } finally {
      heal();
    }
  });

  it("waits for the configured depth before it answers", async () => {
    const id = await account();
    const deep = await bed.open({ confirmations: 3 });
    let answered = false;
    const writing = deep.chain.submit(addGroup(id, "deep")).finally(() => (answered = true));
    await eventually("it is mined", async () => (await bed.groupCount(id)) === 1);
    await bed.mine(1);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(answered).to.equal(false);
    await bed.mine(1);
    expect((await writing).result.group_id).to.equal("1");
    await deep.close();
  });

  it("a write at the configured depth is confirmed", async () => {
    const shallow = await bed.open({ tuning: { finalityDepth: 4 } });
    await chain.close();
    const id = freshAccountId();
    const { submissionId } = await shallow.chain.submit(newAccount(id));
    await bed.mine(5);
    await eventually(
      "it is confirmed",
      async () => (await shallow.chain.submission(submissionId))?.state === "confirmed",
    );
    chain = shallow.chain;
  });

  describe("events", () => {
    it("are the account's own, in order, with a cursor that resumes", async () => {
      const [id, other] = [await account(), await account()];
      await chain.submit(addGroup(other, "not mine"));
      for (const name of ["a", "b", "c"]) await chain.submit(addGroup(id, name));
      await bed.followed();
      const first = await chain.events(id, undefined, 2);
      const rest = await chain.events(id, first.next, 1_000);
      const all = [...first.events, ...rest.events];
      expect(all.map(({ name }) => name)).to.deep.equal(["AccountCreated", "GroupAdded", "GroupAdded", "GroupAdded"]);
      expect(all.slice(1).map(({ args }) => [args.id, args.groupId, args.name])).to.deep.equal([
        [id, "1", "a"],
        [id, "2", "b"],
        [id, "3", "c"],
      ]);
      const end = await chain.events(id, rest.next, 1_000);
      expect(end).to.deep.equal({ events: [], next: rest.next });
      const newest = await chain.events(id, undefined, 3, "newest");
      const older = await chain.events(id, newest.next, 3, "newest");
      expect([...newest.events, ...older.events]).to.deep.equal([...all].reverse());
      expect((await refusal(chain.events(id, "yesterday", 10))).code).to.equal("invalid_value");
    });

    it("removed by a reorg are retracted by entries of their own, and cursors stay valid", async () => {
      const id = await account();
      await chain.submit(addGroup(id, "kept?"));
      await bed.followed();
      const before = await chain.events(id, undefined, 100);
      expect(before.events.map(({ name }) => name)).to.deep.equal(["AccountCreated", "GroupAdded"]);
      await bed.reorg(1);
      await eventually("it is there again", async () => (await allEvents(id)).length === 4);
      const after = (await chain.events(id, before.next, 100)).events;
      expect(after.map(({ name, removed }) => [name, removed])).to.deep.equal([
        ["GroupAdded", true],
        ["GroupAdded", false],
      ]);
      expect(after[0]?.transactionHash).to.equal(before.events[1]?.transactionHash);
    });

    it("continue after a restart, also across a reorg in between", async () => {
      const id = await account();
      await bed.followed();
      const cursor = (await chain.events(id, undefined, 100)).next;
      await chain.submit(addGroup(id, "before the restart"));
      await bed.followed();
      await chain.close();
      await bed.provider.send("anvil_reorg", [1, []]);
      await bed.mine();
      ({ chain } = await bed.open());
      await eventually("the write is carried over", async () => (await bed.groupCount(id)) === 1);
      await eventually("its event stands", async () => {
        const { events } = await chain.events(id, cursor, 100);
        return events.map(({ removed }) => removed).join() === "false,true,false";
      });
    });

    it("list the accounts of an owner, also one created on chain, and not one transferred away", async () => {
      const owner = bed.executor.wallet(7).connect(bed.provider);
      await bed.provider.send("anvil_setBalance", [owner.address, toBeHex(10n ** 20n)]);
      await (await bed.contract.connect(owner).newChainSecuredAccount("own", "")).wait();
      const id = await account();
      await chain.submit(
        request(id, "transfer_ownership", { functionName: "transferOwnership", args: [id, owner.address] }),
      );
      await bed.followed();
      const owned = await chain.accountsOwnedBy(owner.address as never);
      expect(owned.map(({ isGiven }) => isGiven)).to.deep.equal([false, true]);
      expect(owned[1]?.id).to.equal(id);
      await (await bed.contract.connect(owner).transferOwnership(id, bed.executor.wallet(6).address)).wait();
      expect(await chain.accountsOwnedBy(owner.address as never)).to.deep.equal(owned.filter((one) => one.id !== id));
    });

    it("of an owner's direct write are seen within a block, and its state at once", async () => {
      const owner = bed.executor.wallet(5).connect(bed.provider);
      await bed.provider.send("anvil_setBalance", [owner.address, toBeHex(10n ** 20n)]);
      await (await bed.contract.connect(owner).newChainSecuredAccount("mine", "")).wait();
      await bed.followed();
      const id = (await chain.accountsOwnedBy(owner.address as never))[0]?.id as AccountId;
      await (await bed.contract.connect(owner).addGroup(id, "direct", "", [], [])).wait();
      expect((await chain.groups(id, { offset: 0, limit: 10 })).items.map(({ name }) => name)).to.deep.equal([
        "direct",
      ]);
      await eventually(
        "its event is there",
        async () => (await allEvents(id)).some(({ name }) => name === "GroupAdded"),
        1_000,
      );
    });
  });
});
