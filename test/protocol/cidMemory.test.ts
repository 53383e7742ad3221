/** Remembered CIDs are those of the importer, for text and bytes, whatever came before and however much. */
import { expect } from "chai";
import fc from "fast-check";
import { cidOfCode } from "../../protocol/cid";
import { rememberedCidOfCode } from "../../protocol/cidMemory";
import { count, SEED } from "../support/counts";

describe("remembered CIDs", () => {
  it("are those of the code, the first time and every time", async () => {
    const code = fc.oneof(fc.string({ unit: "grapheme" }), fc.uint8Array({ maxLength: 2_000 }));
    await fc.assert(
      fc.asyncProperty(fc.array(code, { maxLength: 20 }), async (codes) => {
        for (const one of [...codes, ...codes]) expect(await rememberedCidOfCode(one)).to.equal(await cidOfCode(one));
      }),
      { seed: SEED, numRuns: count(30, 500) },
    );
  });

  it("are right beyond what is kept", async () => {
    const codes = Array.from({ length: 1_200 }, (_, i) => `// ${i}`);
    for (const code of codes) await rememberedCidOfCode(code);
    for (const code of [...codes.slice(0, 3), ...codes.slice(-3)])
      expect(await rememberedCidOfCode(code)).to.equal(await cidOfCode(code));
  });
});
