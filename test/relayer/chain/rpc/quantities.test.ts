/** Numbers of blocks and transactions in endpoints' answers. */
import { expect } from "chai";
import { RpcError } from "../../../../protocol/rpc/errors";
import { countIn, quantityOf } from "../../../../relayer/chain/rpc/quantities";

describe("a number of blocks or transactions", () => {
  it("is written as endpoints write it, and read back", () => {
    for (const count of [0, 1, 255, 2 ** 48 - 1]) expect(countIn(quantityOf(count))).to.equal(count);
  });

  it("is nothing that only converts to one: an endpoint that answers so has failed", () => {
    for (const answer of [null, undefined, "", "0x", [], {}, 5, "5", "0xg", quantityOf(2 ** 48), "0x1 "])
      expect(() => countIn(answer), JSON.stringify(answer)).to.throw(RpcError, "no number");
  });
});
