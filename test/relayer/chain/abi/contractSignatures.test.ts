import { expect } from "chai";
import { id } from "ethers";
import { isValidSignatureCall, saysValid } from "../../../../relayer/chain/abi/contractSignatures";

const MAGIC = id("isValidSignature(bytes32,bytes)").slice(0, 10);
const padded = (word: string): string => word.padEnd(66, "0");

describe("signatures of contracts", () => {
  it("are asked about by the standard's function", () => {
    expect(isValidSignatureCall(id("digest"), "0x1234").slice(0, 10)).to.equal(MAGIC);
  });

  it("are valid for the standard's word alone", () => {
    expect(saysValid(padded(MAGIC))).to.equal(true);
    for (const answer of ["0x", MAGIC, padded("0xffffffff"), `${padded(MAGIC)}${"0".repeat(64)}`, undefined, true])
      expect(saysValid(answer), String(answer)).to.equal(false);
  });
});
