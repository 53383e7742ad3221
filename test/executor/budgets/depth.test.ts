/** How deep leases must be: what a spend waits for has to come before its run is over. */
import { expect } from "chai";
import { leaseDepthOf } from "../../../executor/budgets/depth";
import { RUN_LIMITS } from "../../../protocol/limits";

const POLYGON = 137n;
/** Chain ids, and the seconds between two blocks. */
const NETWORKS: readonly (readonly [bigint, number])[] = [
  [1n, 12],
  [11_155_111n, 12],
  [10n, 2],
  [8_453n, 2],
  [84_532n, 2],
  [POLYGON, 2],
  [42_161n, 0.25],
  [421_614n, 0.25],
  [31_337n, 1],
];

describe("the depth of leases", () => {
  it("is reached within a run of the default length, on every known network", () => {
    for (const [chainId, seconds] of NETWORKS) {
      const { confirmations, patienceMs } = leaseDepthOf(chainId, undefined);
      // The block that carries it out comes as late as one may, after some seconds to send it.
      const neededMs = (confirmations + 1) * seconds * 1_000 + 5_000;
      expect(neededMs, `on ${chainId}`).to.be.below(RUN_LIMITS.wallMs);
      expect(patienceMs, `on ${chainId}`).to.be.at.least(neededMs);
    }
  });

  it("is waited for where an operator asks for more", () => {
    expect(leaseDepthOf(POLYGON, 64).patienceMs).to.be.above(64 * 2_000 + 30_000);
    expect(leaseDepthOf(POLYGON, 1).patienceMs).to.equal(60_000);
    expect(leaseDepthOf(POLYGON, 400)).to.include({ confirmations: 400, final: 800, searched: 1_600 });
  });
});
