/** The probe's byte code equals its compiled source, and its answer is decoded as encoded. */
import { expect } from "chai";
import { BATCH_PROBE, BATCH_PROBE_SOURCE, decodeProbe, encodeProbe } from "../../../../relayer/chain/abi/batchProbe";

interface Compiler {
  compile(input: string): string;
}
interface Compiled {
  readonly contracts: Record<string, Record<string, { evm: { bytecode: { object: string } } }>>;
}

describe("the probe of a batch", function () {
  this.timeout(60_000);

  it("equals its compiled source", async () => {
    const { default: solc } = (await import("solc" as string)) as { default: Compiler };
    const outputSelection = { "*": { "*": ["evm.bytecode.object"] } };
    const settings = { optimizer: { enabled: true, details: { yul: true } }, evmVersion: "paris", outputSelection };
    const input = { language: "Yul", sources: { "probe.yul": { content: BATCH_PROBE_SOURCE } }, settings };
    const { contracts } = JSON.parse(solc.compile(JSON.stringify(input))) as Compiled;
    expect(`0x${contracts["probe.yul"]?.BatchProbe?.evm.bytecode.object}`).to.equal(BATCH_PROBE);
  });

  it("encodes calls of any length, and decodes the answer item by item", () => {
    const contract = "0x5FbDB2315678afecb367f032d93F642f64180aa3";
    const word = (value: number): string => value.toString(16).padStart(64, "0");
    expect(encodeProbe(contract, ["0x1234", "0x"])).to.equal(
      `0x${contract.slice(2).toLowerCase().padStart(64, "0")}${word(2)}1234${word(0)}`,
    );
    expect(decodeProbe(`0x${word(1)}${word(777)}${word(0)}${word(0)}${word(5)}${word(2)}abcd`)).to.deep.equal([
      { succeeded: true, gas: 777n, reason: "0x" },
      { succeeded: false, gas: 5n, reason: "0xabcd" },
    ]);
    expect(() => decodeProbe(`0x${word(0)}${word(5)}${word(3)}abcd`)).to.throw(RangeError);
    expect(() => decodeProbe("0x12")).to.throw(RangeError);
  });
});
