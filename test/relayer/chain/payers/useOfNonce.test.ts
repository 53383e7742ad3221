/** What used a nonce, as several endpoints show it. */
import { expect } from "chai";
import { RpcClient } from "../../../../relayer/chain/rpc/client";
import { UseOfNonce } from "../../../../relayer/chain/payers/useOfNonce";
import { encodeTransaction, payerAddress, SimulatedChain } from "../../../support/simulator/chain";
import { Node } from "../../../support/simulator/endpoint";

const CHAIN_ID = 31_337;
const BLOCKS = 30;
const sender = payerAddress(1);

describe("the use of a nonce", () => {
  const chain = new SimulatedChain(CHAIN_ID, 0);
  const [short, other] = [new SimulatedChain(CHAIN_ID, 0), new SimulatedChain(8_453, 0)];
  let nodes: readonly Node[];
  let rpc: RpcClient;
  const useOf = (nonce: number): ReturnType<UseOfNonce["find"]> => new UseOfNonce(rpc).find(sender, nonce);
  const used: { readonly hash: string; readonly block: { readonly number: number; readonly hash: string } }[] = [];

  before(() => {
    for (let number = 1; number <= BLOCKS; number++) {
      if (number % 7 === 0) {
        const { rawTransaction, hash } = encodeTransaction({ payer: 1, nonce: used.length, calls: [], maxFee: "9" });
        chain.baseFee = 1n;
        chain.send(rawTransaction);
        chain.mine();
        used.push({ hash, block: { number, hash: chain.head.hash } });
      } else chain.mine();
    }
    short.mine();
  });
  beforeEach(() => {
    nodes = [new Node(chain, () => other, 1), new Node(chain, () => other, 1), new Node(chain, () => other, 1)];
    rpc = new RpcClient({
      chainId: BigInt(CHAIN_ID),
      urls: ["0", "1", "2"],
      timeoutMs: 100,
      deadlineMs: 200,
      connect: (url) => {
        const callTogether = async (calls: Parameters<Node["answer"]>[0]) => (nodes[Number(url)] as Node).answer(calls);
        return { callTogether, close: async () => undefined };
      },
    });
  });

  it("is found in whatever block it is", async () => {
    for (const [nonce, use] of used.entries()) expect(await useOf(nonce)).to.deep.equal(use);
  });

  it("is still found where nodes have lost the counts of its block since", async () => {
    for (const node of nodes) node.countsKept = BLOCKS - 5;
    const use = new UseOfNonce(rpc);
    expect(await use.find(sender, 0)).to.deep.equal(used[0]);
    for (const node of nodes) node.countsKept = 1;
    expect(await use.find(sender, 0)).to.deep.equal(used[0]);
  });

  it("does not ask for the counts of older blocks than nodes keep, if it is younger", async () => {
    const long = new SimulatedChain(CHAIN_ID, 0);
    long.baseFee = 1n;
    for (let made = 0; made < 200; made++) long.mine();
    const { rawTransaction, hash } = encodeTransaction({ payer: 1, nonce: 0, calls: [], maxFee: "9" });
    long.send(rawTransaction);
    for (let made = 0; made < 90; made++) long.mine();
    nodes = nodes.map(() => new Node(long, () => other, 1));
    for (const node of nodes) node.countsKept = 128;
    expect((await useOf(0))?.hash).to.equal(hash);
  });

  it("is not found before it happens", async () => {
    expect(await useOf(used.length)).to.equal(undefined);
  });

  it("needs most of the endpoints that answer, and none of those that do not, or are on another chain", async () => {
    const [first, second, third] = nodes as [Node, Node, Node];
    second.fault = "down";
    third.fault = "other chain";
    expect(await useOf(0)).to.deep.equal(used[0]);
    nodes = [first, new Node(short, () => other, 1), new Node(short, () => other, 1)];
    expect(await useOf(0)).to.equal(undefined);
  });
});
