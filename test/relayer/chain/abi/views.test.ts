/**
 * Results of views, decoded in place: equal to the general coder's, and refused when a view cannot have returned them.
 */
import { expect } from "chai";
import fc from "fast-check";
import { Interface, getAddress, hexlify, type FunctionFragment, type ParamType } from "ethers";
import { MalformedAnswer } from "../../../../protocol/abi";
import { CONTRACT } from "../../../../relayer/chain/abi/contract";
import { decodeResult, encodeView, type ViewArgument } from "../../../../relayer/chain/abi/views";
import { count, SEED } from "../../../support/counts";

const VIEWS = CONTRACT.fragments.filter(
  (fragment): fragment is FunctionFragment =>
    fragment.type === "function" &&
    /^(get[AGU]|list|pkpByNumber|apiPayers|adminApiPayer)/.test((fragment as FunctionFragment).name),
);

function arbitrary(type: ParamType): fc.Arbitrary<unknown> {
  if (type.arrayChildren !== null) return fc.array(arbitrary(type.arrayChildren), { maxLength: 5 });
  if (type.components !== null)
    return fc.record(Object.fromEntries(type.components.map((component) => [component.name, arbitrary(component)])));
  if (type.type === "bool") return fc.boolean();
  if (type.type === "string") return fc.string({ unit: "grapheme", maxLength: 80 });
  if (type.type === "address")
    return fc.uint8Array({ minLength: 20, maxLength: 20 }).map((bytes) => getAddress(hexlify(bytes)));
  const bits = Number(/^uint(\d+)$/.exec(type.type)?.[1]);
  return fc.oneof(fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n }), fc.bigInt({ min: 0n, max: 255n }));
}

describe("results of the contract's views", () => {
  for (const view of VIEWS) {
    it(`${view.name}: encoded as by the ABI's general coder`, () => {
      fc.assert(
        fc.property(fc.tuple(...view.inputs.map(arbitrary)), (args) => {
          expect(encodeView(view.name, args as ViewArgument[])).to.equal(CONTRACT.encodeFunctionData(view.name, args));
        }),
        { seed: SEED, numRuns: count(20, 1_000) },
      );
    });
    it(`${view.name}: decoded as by the ABI's general coder`, () => {
      fc.assert(
        fc.property(fc.tuple(...view.outputs.map(arbitrary)), (values) => {
          expect(decodeResult(view.name, CONTRACT.encodeFunctionResult(view.name, values))).to.deep.equal(values);
        }),
        { seed: SEED, numRuns: count(50, 2_000) },
      );
    });
  }

  it("cut, changed or random bytes are refused or decoded as some value, in bounded time", () => {
    const item = { id: 1n, name: "name", description: "", pkpCount: 1n, actionCount: 2n };
    const answer = CONTRACT.encodeFunctionResult("listGroups", [[item, item, item], 3n]);
    const tryReading = (data: unknown): void => {
      try {
        decodeResult("listGroups", data);
      } catch (error) {
        expect(error).to.be.instanceOf(MalformedAnswer);
      }
    };
    for (let length = 2; length < answer.length; length += 2) {
      expect(() => decodeResult("listGroups", answer.slice(0, length)), String(length)).to.throw(MalformedAnswer);
    }
    for (const bad of ["", "0x0", "0xzz", null, 7, undefined, {}])
      expect(() => decodeResult("listGroups", bad)).to.throw(MalformedAnswer);
    const word = fc.oneof(fc.nat((answer.length - 2) / 64 - 1), fc.constant(0));
    const value = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), fc.bigInt({ min: 0n, max: 2_000n }));
    fc.assert(
      fc.property(word, value, (index, changed) => {
        const start = 2 + index * 64;
        tryReading(answer.slice(0, start) + changed.toString(16).padStart(64, "0") + answer.slice(start + 64));
      }),
      { seed: SEED, numRuns: count(500, 20_000) },
    );
  });

  it("names that are not UTF-8 are decoded with replacement characters", () => {
    const bytes = "0xff41c328eda080c0af";
    const asBytes = CONTRACT.getFunction("getGroup")?.format("full").replaceAll("string", "bytes") ?? "";
    const data = new Interface([asBytes]).encodeFunctionResult("getGroup", [[1n, bytes, bytes, 0n, 0n]]);
    expect((decodeResult("getGroup", data)[0] as { name: string }).name).to.equal(
      Buffer.from(bytes.slice(2), "hex").toString("utf8"),
    );
  });
});
