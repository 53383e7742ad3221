/**
 * The results of a simulation: gas limits that suffice and respect the protocol's maximum, refusals by name, and nodes
 * without state overrides.
 */
import { expect } from "chai";
import { KeywrightError } from "../../../../protocol/errors";
import type { Address } from "../../../../protocol/ids";
import { RpcError } from "../../../../protocol/rpc/errors";
import { CONTRACT } from "../../../../relayer/chain/abi/contract";
import type { RpcClient } from "../../../../relayer/chain/rpc/client";
import { fitsIntoBatch, Simulation } from "../../../../relayer/chain/submissions/simulation";

const CONTRACT_ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3" as Address;
const PAYER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" as Address;
const MAX_GAS = 16_777_216n;
const word = (value: number): string => value.toString(16).padStart(64, "0");

function simulationOver(answer: (method: string) => unknown): {
  readonly simulation: Simulation;
  readonly asked: string[];
} {
  const asked: string[] = [];
  const callAt = async (
    _block: number,
    callsAt: (block: string) => readonly { method: string }[],
  ): Promise<unknown> => {
    const [call] = callsAt("0x1");
    asked.push(call?.method ?? "");
    const value = answer(call?.method ?? "");
    if (value instanceof Error) throw value;
    return { values: [value], blockNumber: 1 };
  };
  const rpc = { callAt } as unknown as RpcClient;
  return {
    simulation: new Simulation({
      rpc,
      contractAddress: CONTRACT_ADDRESS,
      forwarder: async () => CONTRACT_ADDRESS,
      minBlock: async () => 1,
      maxTransactionGas: MAX_GAS,
    }),
    asked,
  };
}

describe("simulation", () => {
  const { simulation } = simulationOver(() => "0x1");

  it("adds a margin for a single write, up to the maximum of one transaction", () => {
    expect(simulation.limitAlone(100_000n)).to.equal(150_000n);
    expect(simulation.limitAlone(MAX_GAS)).to.equal(MAX_GAS);
    expect(() => simulation.limitAlone(MAX_GAS + 1n))
      .to.throw(KeywrightError)
      .with.property("code", "invalid_value");
  });

  it("gives a batch what its calls need, and before the last one the amount the contract guarantees each", () => {
    const call = { calldata: `0x${"00".repeat(200)}`, gas: 60_000n };
    const two = simulation.limitTogether([call, call]);
    const three = simulation.limitTogether([call, call, call]);
    expect(two > 21_000n + 120_000n + 1_000_000n).to.equal(true);
    expect(three - two > 60_000n).to.equal(true);
    expect(fitsIntoBatch({ ...call, gas: 700_000n })).to.equal(true);
    expect(fitsIntoBatch({ ...call, gas: 800_000n })).to.equal(false);
    expect(fitsIntoBatch({ calldata: `0x${"00".repeat(200_000)}`, gas: 1n })).to.equal(false);
  });

  it("gives one that is left of a batch what it needs alone, intrinsic cost included", () => {
    const call = { calldata: `0x${"00".repeat(200)}`, gas: 60_000n };
    const limit = simulation.limitTogether([call]);
    expect(limit > simulation.limitAlone(81_000n) && limit < 1_000_000n).to.equal(true);
  });

  it("names the client's error, and reports an unknown payer as an internal one", async () => {
    const reverted = (name: string, args: readonly unknown[]): RpcError =>
      new RpcError("reverted", "no", CONTRACT.encodeErrorResult(name, args));
    const unknown = CONTRACT.getError("NotAuthorized");
    const refusal = simulationOver(() => reverted("NotAuthorized", unknown?.inputs.map(() => PAYER) ?? []));
    const error: unknown = await refusal.simulation.alone({ calldata: "0x" }, PAYER).catch((caught: unknown) => caught);
    expect(error).to.have.property("code", "no_payer_available");
  });

  it("makes one request for a whole batch; where a node lacks overrides it gives no result", async () => {
    const works = simulationOver(() => `0x${word(1)}${word(777)}${word(0)}${word(1)}${word(888)}${word(0)}`);
    const calls = [{ calldata: "0x01" }, { calldata: "0x02" }];
    expect((await works.simulation.inSequence(calls, PAYER))?.map(({ gas }) => gas)).to.deep.equal([777n, 888n]);
    expect(works.asked).to.deep.equal(["eth_call"]);
    const plain = simulationOver(() => "0x");
    expect(await plain.simulation.inSequence(calls, PAYER)).to.equal(undefined);
  });
});
