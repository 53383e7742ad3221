/** The calldata of a batch: byte for byte that of ethers. */
import { expect } from "chai";
import fc from "fast-check";
import { encodeTryMulticall } from "../../../executor/writes/calldata";
import { SEED, count } from "../../support/counts";
import { ABI } from "../../support/writes";

describe("tryMulticall's calldata", () => {
  it("is what ethers encodes, for any number of calls of any length", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 40 }), (calls) => {
        expect(`0x${encodeTryMulticall(calls).toString("hex")}`).to.equal(
          ABI.encodeFunctionData("tryMulticall", [calls]),
        );
      }),
      { seed: SEED, numRuns: count(100, 2_000) },
    );
  });
});
