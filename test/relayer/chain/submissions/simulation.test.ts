/** The results of a simulation: refusals by name, and nodes without state overrides. */
import { expect } from "chai";
import type { Address } from "../../../../protocol/ids";
import { RpcError } from "../../../../protocol/rpc/errors";
import { CONTRACT } from "../../../../relayer/chain/abi/contract";
import type { RpcClient } from "../../../../relayer/chain/rpc/client";
import { Simulation } from "../../../../relayer/chain/submissions/simulation";

const CONTRACT_ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3" as Address;
const PAYER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8" as Address;
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
    }),
    asked,
  };
}

describe("simulation", () => {
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
