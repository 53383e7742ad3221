/**
 * One address, many nodes: a managed provider answers the items of a batch in any order from any of its nodes, which
 * are at different heights.
 */
import { expect } from "chai";
import type { AccountId } from "../../../../protocol/ids";
import type { Chain } from "../../../../relayer/chain/types";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount } from "../../../support/chainBed";
import { after as delayed, type Fault, type RpcAnswer, type RpcMessage } from "../../../support/rpcProxy";

describe("nodes at different heights behind one address", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let chain: Chain;
  let account: AccountId;
  before(async () => {
    bed = await ChainBed.start({ payers: 1 });
    ({ chain } = await bed.open());
    account = freshAccountId();
    await chain.submit(newAccount(account));
  });
  after(() => bed?.stop());
  afterEach(() => bed.proxy.heal());

  /** Every call at "latest" is answered by a node stopped at this block. */
  function frozenForLatestAt(block: number): Fault {
    const tag = `0x${block.toString(16)}`;
    return ({ method, params }: RpcMessage): Promise<RpcAnswer> | undefined => {
      if (method !== "eth_call" || params[1] !== "latest") return undefined;
      return bed.provider.send(method, [params[0], tag]).then(
        (result: unknown) => ({ result }),
        (error: { info?: { error: { code: number; message: string } } }) => ({
          error: error.info?.error ?? { code: -32_000, message: "header not found" },
        }),
      );
    };
  }

  it("a read after a write is not answered by the lagging node of the batch", async () => {
    const before = await bed.provider.getBlockNumber();
    await chain.submit(addGroup(account, "seen"));
    bed.proxy.inject(frozenForLatestAt(before));
    expect((await chain.groups(account, { offset: 0, limit: 100 })).items.map(({ name }) => name)).to.include("seen");
  });

  it("a key or group that a lagging node does not have yet is not reported as unknown", async () => {
    const before = await bed.provider.getBlockNumber();
    const id = freshAccountId();
    await chain.submit(newAccount(id));
    bed.proxy.inject(frozenForLatestAt(before));
    expect((await chain.account(id))?.id).to.equal(id);
    expect((await chain.key([id as never]))?.accountId).to.equal(id);
  });

  it("a block that arrives between two items of a batch is seen", async () => {
    await chain.groups(account, { offset: 0, limit: 1 });
    await bed.registerPayers(8, 8);
    await chain.groups(account, { offset: 0, limit: 1 });
    const other = bed.executor.wallet(8).connect(bed.provider);
    await (await bed.contract.connect(other).addGroup(account, "by another hand", "", [], [])).wait();
    expect((await chain.groups(account, { offset: 0, limit: 100 })).items.map(({ name }) => name)).to.include(
      "by another hand",
    );
  });

  it("reads continue after a reorg to a shorter chain", async () => {
    await chain.close();
    ({ chain } = await bed.open());
    await bed.mine(6);
    await chain.groups(account, { offset: 0, limit: 1 });
    const height = await bed.provider.getBlockNumber();
    await bed.provider.send("anvil_rollback", [4]);
    expect(await bed.provider.getBlockNumber()).to.equal(height - 4);
    expect((await chain.groups(account, { offset: 0, limit: 100 })).items.map(({ name }) => name)).to.include("seen");
  });

  it("logs that a lagging node does not have yet are not lost", async () => {
    const id = freshAccountId();
    await chain.submit(newAccount(id));
    // For a while the node that answers for logs and receipts lacks the newest blocks, whichever way it is asked.
    const standsAt = await bed.provider.getBlockNumber();
    bed.proxy.inject(({ method, params }) => {
      if (method === "eth_getLogs")
        return emptyAbove(standsAt, params[0] as { blockHash?: string; fromBlock?: string });
      return method === "eth_getBlockReceipts" ? Promise.resolve({ result: null }) : undefined;
    });
    for (const name of ["a", "b"]) await chain.submit(addGroup(id, name));
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    bed.proxy.heal();
    await chain.submit(addGroup(id, "c"));
    const names = async (): Promise<unknown[]> =>
      (await chain.events(id, undefined, 100)).events.map(({ args }) => args.name);
    await eventually("the events are there", async () => (await names()).length >= 4);
    expect(await names()).to.deep.equal(["test", "a", "b", "c"]);
  });

  async function emptyAbove(
    block: number,
    filter: { blockHash?: string; fromBlock?: string },
  ): Promise<RpcAnswer | undefined> {
    if (filter.blockHash === undefined) return Number(filter.fromBlock) > block ? { result: [] } : undefined;
    const asked = (await bed.provider.send("eth_getBlockByHash", [filter.blockHash, false])) as {
      number: string;
    } | null;
    return asked === null || Number(asked.number) > block ? { result: [] } : undefined;
  }

  it("a lagging node's empty answer is confirmed by the receipts where another log fills the bloom", async () => {
    const id = freshAccountId();
    await chain.submit(newAccount(id));
    bed.proxy.injectTimes(3, "eth_getLogs", () => Promise.resolve({ result: [] }));
    bed.proxy.injectTimes(1, "eth_getBlockReceipts", delayed(50));
    await chain.submit(addGroup(id, "from receipts"));
    await eventually(
      "the event is there",
      async () => (await chain.events(id, undefined, 100)).events.some(({ args }) => args.name === "from receipts"),
      3_000,
    );
  });
});
