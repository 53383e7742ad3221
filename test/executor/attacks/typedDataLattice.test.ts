import { expect } from "chai";
import { RUN_LIMITS } from "../../../protocol/limits";
import { longestHold, opsBed } from "../../support/ops";
import { expectInTime, itInTime } from "../../support/inTime";

type Types = Record<string, { name: string; type: string }[]>;
const { pkpId, codeOf } = opsBed();
const sign = (types: Types, message: object): Promise<string> =>
  codeOf("signTypedData", { pkpId, domain: {}, types, message });

/** A0 contains A1 and A2, A1 contains A2 and A3, and so on: few types, but exponentially many paths through them. */
function lattice(types: number, names: [string, string] = ["x", "y"]): Types {
  const fields = (i: number): { name: string; type: string }[] =>
    [1, 2].filter((step) => i + step < types).map((step) => ({ name: names[step - 1] ?? "", type: `A${i + step}` }));
  return Object.fromEntries(Array.from({ length: types }, (_, i) => [`A${i}`, fields(i)]));
}

describe("attack: typed data with types that form a lattice", () => {
  for (const types of [34, 60, 64]) {
    itInTime(`of ${types} types is refused at once, without traversal`, async () => {
      let code = "";
      const held = await longestHold(async () => (code = await sign(lattice(types), {})));
      expect(code).to.equal("limit_exceeded");
      expectInTime(held, 50);
    });
  }

  it("that reads inherited properties finds nothing there", async () => {
    expect(await sign(lattice(10, ["toString", "valueOf"]), {})).to.equal("invalid_arguments");
    expect(
      await sign({ A: [{ name: "b", type: "B[]" }], B: [{ name: "constructor", type: "C" }], C: [] }, { b: [{}] }),
    ).to.equal("invalid_arguments");
  });

  it("counts every bound exactly: at the limit it signs, one above it is refused", async () => {
    const flat = (types: number): [Types, object] => {
      const names = Array.from({ length: types - 1 }, (_, i) => `T${i}`);
      const root = names.map((name) => ({ name, type: name }));
      return [
        { R: root, ...Object.fromEntries(names.map((name) => [name, []])) },
        Object.fromEntries(names.map((name) => [name, {}])),
      ];
    };
    expect(await sign(...flat(RUN_LIMITS.typedDataTypes))).to.equal("allowed");
    expect(await sign(...flat(RUN_LIMITS.typedDataTypes + 1))).to.equal("limit_exceeded");
    // 2^n - 1 paths for n doublings of one type below.
    const doubling = (n: number): Types => {
      const below = (i: number) => (i < n ? ["D", "E"].map((kind) => ({ name: kind, type: `${kind}${i}` })) : []);
      const levels = Array.from({ length: n - 1 }, (_, i) =>
        ["D", "E"].map((kind) => [`${kind}${i + 1}`, below(i + 2)] as const),
      );
      return { Root: below(1), ...Object.fromEntries(levels.flat()) };
    };
    expect(RUN_LIMITS.typedDataPaths).to.equal(256);
    const full = (n: number): object => (n === 1 ? {} : { D: full(n - 1), E: full(n - 1) });
    expect(await sign(doubling(8), full(8)), "255 ways").to.equal("allowed");
    expect(await sign(doubling(9), full(9)), "511 ways").to.equal("limit_exceeded");
    const texts = (count: number): [Types, object] => [
      { M: [{ name: "t", type: "string[]" }] },
      { t: Array.from({ length: count }, () => "") },
    ];
    expect(await sign(...texts(280))).to.equal("allowed");
    expect(await sign(...texts(300))).to.equal("limit_exceeded");
  });

  it("of a cycle, of long names and of a type named like a method is refused", async () => {
    expect(
      await sign({ A: [{ name: "b", type: "B" }], B: [{ name: "a", type: "A[]" }], R: [{ name: "a", type: "A" }] }, {}),
    ).to.equal("invalid_arguments");
    expect(await sign({ M: [{ name: "x", type: `uint8${"[]".repeat(200)}` }] }, { x: [] })).to.equal("limit_exceeded");
    expect(await sign({ toString: [] }, {})).to.equal("invalid_arguments");
  });

  itInTime("blocks the event loop for less than 50 ms for the largest permitted message", async function () {
    this.timeout(20_000);
    const zeros = Array.from({ length: 1_500 }, () => 0);
    const held = await longestHold(async () => {
      expect(await sign({ M: [{ name: "n", type: "uint8[]" }] }, { n: zeros })).to.equal("allowed");
      expect(
        await sign({ M: [{ name: "s", type: "S[]" }], S: [] }, { s: Array.from({ length: 200 }, () => ({})) }),
      ).to.equal("allowed");
    });
    expectInTime(held, 50);
  });
});
