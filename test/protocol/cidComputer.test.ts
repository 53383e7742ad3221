/** Cached CIDs equal the importer's, for text and bytes, in any order and number. */
import { expect } from "chai";
import fc from "fast-check";
import { cidOfCode } from "../../protocol/cid";
import { cachedCidOfCode } from "../../protocol/cidComputer";
import { count, SEED } from "../support/counts";

describe("cached CIDs", () => {
  it("equal the code's, the first time and every time", async () => {
    const code = fc.oneof(fc.string({ unit: "grapheme" }), fc.uint8Array({ maxLength: 2_000 }));
    await fc.assert(
      fc.asyncProperty(fc.array(code, { maxLength: 20 }), async (codes) => {
        for (const one of [...codes, ...codes]) expect(await cachedCidOfCode(one)).to.equal(await cidOfCode(one));
      }),
      { seed: SEED, numRuns: count(30, 500) },
    );
  });

  it("are correct beyond the size of the cache", async () => {
    const codes = Array.from({ length: 1_200 }, (_, i) => `// ${i}`);
    for (const code of codes) await cachedCidOfCode(code);
    for (const code of [...codes.slice(0, 3), ...codes.slice(-3)])
      expect(await cachedCidOfCode(code)).to.equal(await cidOfCode(code));
  });
});
