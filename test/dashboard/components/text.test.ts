/** Sums as people type them: thousands may be grouped, and no comma makes a sum larger. */
import { expect } from "chai";
import { centsIn, ungrouped } from "../../../dashboard/components/text";

describe("the dashboard's texts", () => {
  it("take commas out of grouped thousands only", () => {
    for (const [typed, plain] of [
      ["1,250", "1250"],
      ["12,345,678.5", "12345678.5"],
    ] as const)
      expect(ungrouped(typed)).to.equal(plain);
    for (const typed of ["0,125", "01,250", "1250,125", "1,25", "1.5,000", ",125"])
      expect(ungrouped(typed)).to.equal(typed);
  });

  it("are sums in dollars", () => {
    expect(["5", "7.5", "7,50", "$20", "1,000.00", "1,250"].map(centsIn)).to.deep.equal([
      ...[500, 750, 750],
      ...[2_000, 100_000, 125_000],
    ]);
    expect(["0,250", "1250,125", "five", "1,25,000"].map(centsIn)).to.deep.equal(Array(4).fill(undefined));
  });
});
