/** Errors of nodes, as texts of any length. */
import { expect } from "chai";
import { classifyRpcError } from "../../protocol/rpc/errors";

describe("a node's error", () => {
  it("is told apart by the front of its text, in a moment however long that is", () => {
    for (const words of ["nonce ", "replacement ", "block ", "exceeds ", "tx nonce ", "Reverted "]) {
      const { user } = process.cpuUsage();
      const { message } = classifyRpcError({ code: -32_000, message: words.repeat(50_000) });
      expect((process.cpuUsage().user - user) / 1_000, `ms for ${words}`).to.be.below(100);
      expect(message).to.have.length.below(1_000);
    }
    expect(classifyRpcError({ code: -32_000, message: `nonce too low${"!".repeat(100_000)}` }).failure).to.equal(
      "nonce_too_low",
    );
  });
});
