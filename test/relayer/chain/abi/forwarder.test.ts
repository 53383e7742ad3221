import { expect } from "chai";
import type { Address } from "../../../../protocol/ids";
import { noncesCall } from "../../../../relayer/chain/abi/forwarder";
import { ERC2771Forwarder__factory } from "../../../../typechain-types";

describe("the forwarder's views", () => {
  it("include the next nonce of a signer", () => {
    const signer = "0x5FbDB2315678afecb367f032d93F642f64180aa3" as Address;
    const { name, args } =
      ERC2771Forwarder__factory.createInterface().parseTransaction({ data: noncesCall(signer) }) ?? {};
    expect([name, args?.[0]]).to.deep.equal(["nonces", signer]);
  });
});
