/** Writes as calldata: single, and several as one multicall. */
import { expect } from "chai";
import { CONTRACT, encodeWrite } from "../../../../relayer/chain/abi/contract";

const ACCOUNT = `0x${"11".repeat(32)}`;
const addGroup = { functionName: "addGroup", args: [ACCOUNT, "group", "", [], []] };
const removeGroup = { functionName: "removeGroup", args: [ACCOUNT, "1"] };

describe("calldata of writes", () => {
  it("encodes the function and its arguments", () => {
    const { name, args } = CONTRACT.parseTransaction({ data: encodeWrite(addGroup) }) ?? {};
    expect([name, args?.[0], args?.[1]]).to.deep.equal(["addGroup", BigInt(ACCOUNT), "group"]);
  });

  it("of several calls of one account is one multicall, all or nothing", () => {
    const { name, args } =
      CONTRACT.parseTransaction({ data: encodeWrite({ functionName: "multicall", calls: [addGroup, removeGroup] }) }) ??
      {};
    expect([name, [...(args?.[0] as Iterable<string>)]]).to.deep.equal([
      "multicall",
      [encodeWrite(addGroup), encodeWrite(removeGroup)],
    ]);
  });
});
