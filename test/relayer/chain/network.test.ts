import { expect } from "chai";
import type { Address } from "../../../protocol/ids";
import { keyNamespaceOf } from "../../../protocol/namespace";
import { networkFacts, networkTuning } from "../../../relayer/chain/network";

const CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3" as Address;

describe("networks", () => {
  it("are known by name, and unknown ones by their id", () => {
    expect(networkFacts(8453n, CONTRACT)).to.include({
      chainName: "Base",
      testnet: false,
      token: "ETH",
      contractAddress: CONTRACT,
    });
    expect(networkFacts(999_999n, CONTRACT)).to.include({ chainName: "Chain 999999", token: "ETH" });
    expect(networkFacts(1n, CONTRACT).keyNamespace)
      .to.equal(keyNamespaceOf(1n, CONTRACT))
      .and.not.equal(keyNamespaceOf(10n, CONTRACT));
  });

  it("set timings by their block time; unknown ones use the defaults", () => {
    expect(networkTuning(1n).stuckAfterMs).to.be.greaterThan(networkTuning(8453n).stuckAfterMs ?? Infinity);
    expect(networkTuning(42161n).defaultTipWei).to.equal(0n);
    expect(networkTuning(999_999n)).to.deep.equal({});
  });
});
