/** Values decoded in place: equal to the general coder's, and never read beyond the data. */
import { AbiCoder, ParamType } from "ethers";
import { expect } from "chai";
import fc from "fast-check";
import { MalformedAnswer } from "../../../../protocol/abi";
import { readAll, shapeOf } from "../../../../relayer/chain/abi/decoder";
import { count, SEED } from "../../../support/counts";

const TYPES = [
  "uint256",
  "uint8",
  "bool",
  "address",
  "string",
  "bytes",
  "uint256[]",
  "string[]",
  "tuple(uint256 id, string name, bool live)",
  "tuple(uint256 id, bytes data)[]",
];
const coder = AbiCoder.defaultAbiCoder();
const bytesOf = (hex: string): Buffer => Buffer.from(hex.slice(2), "hex");

function valueOf(type: ParamType): fc.Arbitrary<unknown> {
  if (type.baseType === "array" && type.arrayChildren !== null)
    return fc.array(valueOf(type.arrayChildren), { maxLength: 4 });
  if (type.components !== null)
    return fc.record(Object.fromEntries(type.components.map((part) => [part.name, valueOf(part)])));
  const bits = Number(type.baseType.replace("uint", "")) || 256;
  return (
    {
      bool: fc.boolean(),
      string: fc.string({ unit: "binary", maxLength: 70 }).filter((text) => text.isWellFormed()),
      bytes: fc.uint8Array({ maxLength: 70 }).map((bytes) => `0x${Buffer.from(bytes).toString("hex")}`),
      address: fc
        .uint8Array({ minLength: 20, maxLength: 20 })
        .map((bytes) => `0x${Buffer.from(bytes).toString("hex")}`),
    }[type.baseType] ?? fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n })
  );
}

/** Structs and lists as plain values; addresses in any case. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object" && value !== null) return Object.values(value).map(plain);
  return typeof value === "string" ? value.toLowerCase() : value;
}

describe("the decoder", () => {
  for (const name of TYPES) {
    it(`decodes ${name} as the general coder encoded it`, () => {
      const type = ParamType.from(name);
      fc.assert(
        fc.property(valueOf(type), fc.bigInt({ min: 0n, max: 2n ** 256n - 1n }), (value, beside) => {
          const bytes = bytesOf(coder.encode([type, "uint256"], [value, beside]));
          const read = readAll([shapeOf(type), shapeOf(ParamType.from("uint256"))], bytes, 0);
          expect(plain(read)).to.deep.equal(plain([value, beside]));
        }),
        { seed: SEED, numRuns: count(40, 2_000) },
      );
    });
  }

  it("refuses truncated data, and lengths beyond the data", () => {
    const types = ["string[]", "tuple(uint256 id, string name, bool live)"].map((name) => ParamType.from(name));
    const whole = bytesOf(coder.encode(types, [["one", "two"], { id: 1, name: "three", live: true }]));
    const read = (bytes: Buffer): unknown => readAll(types.map(shapeOf), bytes, 0);
    expect(() => read(whole)).not.to.throw();
    for (let length = 0; length < whole.length - 32; length++)
      expect(() => read(whole.subarray(0, length)), String(length)).to.throw(MalformedAnswer);
    for (let word = 0; word + 32 <= whole.length; word += 32) {
      const bent = Buffer.from(whole);
      bent.fill(0xff, word, word + 32);
      try {
        read(bent);
      } catch (error) {
        expect(error, String(word)).to.be.instanceOf(MalformedAnswer);
      }
    }
  });

  it("knows no type that the contract does not use", () => {
    expect(() => shapeOf(ParamType.from("int256"))).to.throw(TypeError);
  });
});
