/** Lists of items with the longest texts, from nodes that give a call less gas than a page of them takes. */
import { expect } from "chai";
import { toBeHex } from "ethers";
import type { AccountId } from "../../../../protocol/ids";
import { WIRE_LIMITS } from "../../../../protocol/limits";
import type { Chain, GroupView } from "../../../../relayer/chain/types";
import { ChainBed, freshAccountId, newAccount, request } from "../../../support/chainBed";
import { failureOf } from "../../../support/refusal";
import { RpcProxy, type Fault, type RpcAnswer, type RpcMessage } from "../../../support/rpcProxy";

const GROUPS = 24;

describe("a page that takes more gas than a node gives a call", function () {
  this.timeout(120_000);
  let bed: ChainBed;
  let chain: Chain;
  let account: AccountId;
  let all: readonly GroupView[];

  before(async () => {
    bed = await ChainBed.start({ payers: 1 });
    ({ chain } = await bed.open());
    account = freshAccountId();
    await chain.submit(newAccount(account));
    const description = "d".repeat(WIRE_LIMITS.descriptionBytes);
    const groups = Array.from({ length: GROUPS }, (_, at) => {
      const name = `${at} `.padEnd(WIRE_LIMITS.nameBytes, "n");
      return request(account, "add_group", { functionName: "addGroup", args: [account, name, description, [], []] });
    });
    await Promise.all(groups.map((group) => chain.submit(group)));
    ({ items: all } = await chain.groups(account, { offset: 0, limit: GROUPS }));
    expect(all.length).to.equal(GROUPS);
  });
  after(() => bed?.stop());
  afterEach(() => bed.proxy.heal());

  /** The node itself executes the call, with no more gas than this: geth's `--rpc.gascap`. */
  const capped =
    (gas: number): Fault =>
    ({ method, params }) =>
      method === "eth_call" ? asked(method, [{ ...(params[0] as object), gas: toBeHex(gas) }, params[1]]) : undefined;

  async function asked(method: string, params: readonly unknown[]): Promise<RpcAnswer> {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const headers = { "content-type": "application/json" };
    return (await (await fetch(bed.node.rpcUrl, { method: "POST", headers, body })).json()) as RpcAnswer;
  }

  /** As nodes say it: what runs out itself, or whoever called what ran out. */
  const REFUSALS: Readonly<Record<string, RpcAnswer>> = {
    "in geth's words": { error: { code: -32_000, message: "out of gas" } },
    "in reth's words": { error: { code: -32_003, message: "out of gas: gas required exceeds: 50000000" } },
    "as a revert without a reason": { error: { code: 3, message: "execution reverted", data: "0x" } },
  };
  const wordOf = ({ params }: RpcMessage, fromEnd: number): number =>
    Number(`0x${(params[0] as { data: string }).data.slice(-64 * fromEnd).slice(0, 64)}`);
  const limitOf = (call: RpcMessage): number => wordOf(call, 1);
  const offsetOf = (call: RpcMessage): number => wordOf(call, 2);

  /** The calls of the last page: how many, and how many blocks they name. */
  const callsOf = (seen: readonly RpcMessage[]): [number, number] => {
    const calls = seen.filter(({ method }) => method === "eth_call");
    return [calls.length, new Set(calls.map(({ params }) => params[1])).size];
  };

  it("is read in parts that fit, by a real node", async () => {
    bed.proxy.inject(capped(600_000));
    expect(await chain.groups(account, { offset: 0, limit: 1_000 })).to.deep.equal({ items: all, total: GROUPS });
    expect(await chain.groups(account, { offset: 5, limit: 10 })).to.deep.equal({
      items: all.slice(5, 15),
      total: GROUPS,
    });
    expect(await chain.groups(account, { offset: GROUPS, limit: 10 })).to.deep.equal({ items: [], total: GROUPS });
  });

  for (const [how, refusal] of Object.entries(REFUSALS))
    it(`is read in parts where that is said ${how}`, async () => {
      bed.proxy.inject((call) =>
        call.method === "eth_call" && limitOf(call) > 7 ? Promise.resolve(refusal) : undefined,
      );
      expect(await chain.groups(account, { offset: 1, limit: 20 })).to.deep.equal({
        items: all.slice(1, 21),
        total: GROUPS,
      });
    });

  it("is read by another node that gives a call more", async () => {
    const generous = await RpcProxy.start(bed.node.rpcUrl);
    const { chain: both, close } = await bed.open({ rpcUrls: [bed.proxy.url, generous.url] });
    try {
      bed.proxy.inject(capped(60_000));
      expect((await both.groups(account, { offset: 0, limit: GROUPS })).items).to.deep.equal(all);
      expect(
        callsOf(generous.seen.filter(({ params }) => JSON.stringify(params).includes(account.slice(2)))),
      ).to.include(1);
    } finally {
      await close();
      await generous.stop();
    }
  });

  it("is refused as a read, with what its operator can do, when not one item fits", async () => {
    bed.proxy.inject(capped(60_000));
    const error = await failureOf(chain.groups(account, { offset: 0, limit: 10 }));
    expect(error).to.include({ code: "chain_unavailable", retryAfterSeconds: 60 });
    expect(error).to.have.property("detail").that.includes("This read needs more gas");
    expect(await failureOf(chain.group(account, 1n as never))).to.include({ code: "chain_unavailable" });
  });

  it("is of one block, however many parts it has and whatever is written meanwhile", async () => {
    await bed.registerPayers(8, 8);
    const other = bed.contract.connect(bed.executor.wallet(8).connect(bed.provider));
    const write = async (): Promise<unknown> => (await other.addGroup(account, "later", "", [], [])).wait();
    const from = bed.proxy.seen.length;
    let written: Promise<unknown> | undefined;
    bed.proxy.inject(async (call) => {
      if (call.method === "eth_call" && limitOf(call) === 1 && offsetOf(call) > 50) await (written ??= write());
      return undefined;
    });
    bed.proxy.inject(capped(140_000));
    const { items } = await chain.groups(account, { offset: 0, limit: 100 });
    expect(written, "something was written meanwhile").to.not.equal(undefined);
    expect(items).to.deep.equal(all);
    const parts = bed.proxy.seen.slice(from).filter((call) => call.method === "eth_call" && limitOf(call) === 1);
    expect(callsOf(parts)).to.deep.equal([100, 1]);
  });
});
