/** Reverts as named errors: every error of the contract has its code; any other failure passes through unchanged. */
import { AbiCoder, type ErrorFragment } from "ethers";
import { expect } from "chai";
import { codeOfSolidityError, isErrorCode, KeywrightError } from "../../../../protocol/errors";
import { RpcError } from "../../../../protocol/rpc/errors";
import { CONTRACT } from "../../../../relayer/chain/abi/contract";
import { namedError, readError, revertError } from "../../../../relayer/chain/abi/reverts";

const SAMPLES: Readonly<Record<string, unknown>> = {
  bool: true,
  string: "s",
  bytes: "0x12",
  address: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
};
const dataOf = (error: ErrorFragment): string =>
  error.selector +
  AbiCoder.defaultAbiCoder()
    .encode(
      error.inputs,
      error.inputs.map(({ baseType }) => SAMPLES[baseType] ?? 1n),
    )
    .slice(2);

const errors: ErrorFragment[] = [];
CONTRACT.forEachError((error) => void errors.push(error));

describe("reverts", () => {
  for (const error of errors.filter(({ name }) => isErrorCode(codeOfSolidityError(name)))) {
    it(`${error.name} is ${codeOfSolidityError(error.name)}, with its values`, () => {
      const named = revertError(dataOf(error));
      expect([codeOfSolidityError(error.name), "owner_only"]).to.include(named.code);
      expect(named.facts).not.to.have.property("caller");
      for (const value of Object.values(named.facts)) expect(typeof value).to.be.oneOf(["string", "boolean", "number"]);
    });
  }

  it("without a reason that the contract declares are internal errors, and reveal no details", () => {
    for (const data of [undefined, "0x", "0x12345678"]) expect(revertError(data).code).to.equal("internal_error");
  });

  it("are distinguished from endpoint failures, which pass through unchanged", () => {
    const lost = new RpcError("transport", "gone");
    expect(namedError(lost)).to.equal(lost);
    const own = new TypeError("ours");
    expect(namedError(own)).to.equal(own);
    const large = namedError(new RpcError("needs_too_much_gas", "too much"));
    expect(large).to.be.instanceOf(KeywrightError).that.has.property("code", "invalid_value");
    for (const lacking of [new RpcError("needs_too_much_gas", "too much"), new RpcError("reverted", "reverted", "0x")])
      expect(readError(lacking)).to.have.property("code", "chain_unavailable");
    const [first] = errors.filter(({ name }) => name === "UnknownKey");
    if (first !== undefined)
      expect(namedError(new RpcError("reverted", "reverted", dataOf(first)))).to.have.property("code", "unknown_key");
  });
});
