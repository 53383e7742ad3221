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
import { Simulation } from "../../../../relayer/chain/submissions/simulation";

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
    const one = simulation.limitTogether([call]);
    const two = simulation.limitTogether([call, call]);
    expect(one > 21_000n + 60_000n + 1_000_000n).to.equal(true);
    expect(two - one > 60_000n).to.equal(true);
    expect(simulation.fitsIntoBatch(call.calldata, 700_000n)).to.equal(true);
    expect(simulation.fitsIntoBatch(call.calldata, 800_000n)).to.equal(false);
    expect(simulation.fitsIntoBatch(`0x${"00".repeat(200_000)}`, 1n)).to.equal(false);
  });

  it("names the client's error, and reports an unknown payer as an internal one", async () => {
    const reverted = (name: string, args: readonly unknown[]): RpcError =>
      new RpcError("reverted", "no", CONTRACT.encodeErrorResult(name, args));
    const unknown = CONTRACT.getError("NotAuthorized");
    const refusal = simulationOver(() => reverted("NotAuthorized", unknown?.inputs.map(() => PAYER) ?? []));
    const error: unknown = await refusal.simulation.alone("0x", PAYER).catch((caught: unknown) => caught);
    expect(error).to.have.property("code", "no_payer_available");
  });

  it("makes one request for a whole batch, and one per write from then on where a node lacks overrides", async () => {
    const works = simulationOver(() => `0x${word(1)}${word(777)}${word(0)}${word(1)}${word(888)}${word(0)}`);
    expect(await works.simulation.together(["0x01", "0x02"], PAYER)).to.deep.equal([{ gas: 777n }, { gas: 888n }]);
    expect(works.asked).to.deep.equal(["eth_call"]);
    const plain = simulationOver((method) => (method === "eth_call" ? "0x" : "0x64"));
    for (let time = 0; time < 2; time++)
      expect(await plain.simulation.together(["0x01", "0x02"], PAYER)).to.deep.equal([{ gas: 100n }, { gas: 100n }]);
    expect(plain.asked).to.deep.equal(["eth_call", ...Array<string>(4).fill("eth_estimateGas")]);
  });
});
