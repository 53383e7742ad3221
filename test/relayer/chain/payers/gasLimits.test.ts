/** Gas limits that suffice and respect the protocol's maximum. */
import { expect } from "chai";
import { KeywrightError } from "../../../../protocol/errors";
import { fitsIntoBatch, limitAlone, limitTogether } from "../../../../relayer/chain/payers/gasLimits";

const MAX_GAS = 16_777_216n;

describe("gas limits", () => {
  it("adds a margin for a single write, up to the maximum of one transaction", () => {
    expect(limitAlone(100_000n, MAX_GAS)).to.equal(150_000n);
    expect(limitAlone(MAX_GAS, MAX_GAS)).to.equal(MAX_GAS);
    expect(() => limitAlone(MAX_GAS + 1n, MAX_GAS))
      .to.throw(KeywrightError)
      .with.property("code", "invalid_value");
  });

  it("gives a batch what its calls need, and before the last one the amount the contract guarantees each", () => {
    const call = { calldata: `0x${"00".repeat(200)}`, gas: 60_000n };
    const two = limitTogether([call, call], MAX_GAS);
    const three = limitTogether([call, call, call], MAX_GAS);
    expect(two > 21_000n + 120_000n + 1_000_000n).to.equal(true);
    expect(three - two > 60_000n).to.equal(true);
    expect(fitsIntoBatch({ ...call, gas: 700_000n })).to.equal(true);
    expect(fitsIntoBatch({ ...call, gas: 800_000n })).to.equal(false);
    expect(fitsIntoBatch({ calldata: `0x${"00".repeat(200_000)}`, gas: 1n })).to.equal(false);
  });

  it("gives one that is left of a batch what it needs alone, intrinsic cost included", () => {
    const call = { calldata: `0x${"00".repeat(200)}`, gas: 60_000n };
    const limit = limitTogether([call], MAX_GAS);
    expect(limit > limitAlone(81_000n, MAX_GAS) && limit < 1_000_000n).to.equal(true);
  });
});
