/** Words of calldata that the rules read: the arguments as the contract decodes them. */
import { expect } from "chai";
import { getAddress } from "ethers";
import fc from "fast-check";
import { addressIn, encodeWrite, flagIn, wordOf } from "../../../executor/writes/calldata";
import { WRITE_RULES } from "../../../executor/writes/rules";
import { hash32FromUint } from "../../../protocol/ids";
import { SEED, count } from "../../support/counts";
import { ABI } from "../../support/writes";

/** What the rules read of each function, beside argument 0. */
const READ = {
  newAccount: { 1: "bool", 4: "address" },
  convertToChainSecuredAccount: { 1: "address" },
  registerWalletDerivation: { 1: "address", 2: "uint256" },
} as const;

const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((value) => `0x${Buffer.from(value).toString("hex")}`);
const valueOf = (type: string): fc.Arbitrary<unknown> => {
  if (type.endsWith("[]")) return fc.array(valueOf(type.slice(0, -2)), { maxLength: 3 });
  if (type === "bool") return fc.boolean();
  if (type === "string") return fc.string({ unit: "grapheme", maxLength: 70 });
  if (type === "address") return hex(20);
  return type === "uint256" ? hex(32) : fc.nat(255).map(String);
};

describe("the words of a write", () => {
  it("are what the ABI has at these places: static arguments, the first an id", () => {
    for (const name of Object.keys(WRITE_RULES))
      expect(ABI.getFunction(name)?.inputs[0]?.type, name).to.equal("uint256");
    for (const [name, read] of Object.entries(READ))
      for (const [index, type] of Object.entries(read))
        expect(ABI.getFunction(name)?.inputs[Number(index)]?.type, name).to.equal(type);
  });

  for (const [name, read] of Object.entries(READ))
    it(`are the decoded arguments: ${name}`, () => {
      const types = ABI.getFunction(name)?.inputs.map(({ type }) => type) ?? [];
      fc.assert(
        fc.property(fc.tuple(...types.map(valueOf)), (args) => {
          const write = encodeWrite({ functionName: name, args: args as never });
          const decoded = ABI.decodeFunctionData(name, write.calldata);
          expect(wordOf(write, 0)).to.equal(hash32FromUint(decoded[0] as bigint));
          for (const [index, type] of Object.entries(read)) {
            const at = Number(index);
            if (type === "bool") expect(flagIn(write, at)).to.equal(decoded[at]);
            else if (type === "address") expect(addressIn(write, at)).to.equal(getAddress(String(decoded[at])));
            else expect(wordOf(write, at)).to.equal(hash32FromUint(decoded[at] as bigint));
          }
        }),
        { seed: SEED, numRuns: count(100, 5_000) },
      );
    });

  it("end where the calldata ends", () => {
    const calldata = `0x12345678${"11".repeat(32)}`;
    expect(() => wordOf({ functionName: "f", calldata }, 1)).to.throw(RangeError);
    expect(() => addressIn({ functionName: "f", calldata }, 0), "no address").to.throw(RangeError);
  });
});
