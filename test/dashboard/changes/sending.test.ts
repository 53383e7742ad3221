/** Which failures of sending leave open whether a write gets on chain: it is not offered again as if it were unsent. */
import { expect } from "chai";
import { makeError } from "ethers";
import { ClientError } from "../../../client";
import { sendingErrorOf } from "../../../client/wallet";
import { pendingOf } from "../../../dashboard/changes/sending";

const HASH = `0x${"5e".repeat(32)}`;
const failed = (options: ConstructorParameters<typeof ClientError>[2]): ClientError =>
  new ClientError("transaction_failed", "It failed.", options);

describe("the dashboard's sending", () => {
  it("takes for pending what has a hash and no receipt", () => {
    const facts = { transaction_hash: HASH };
    const timedOut = new ClientError("client_timed_out", "late", { facts, cause: new Error("late") });
    for (const error of [timedOut, failed({ facts, cause: new Error("unread") })])
      expect(pendingOf(error)).to.deep.equal({ words: error.message, hash: HASH });
  });

  it("takes for pending a call that the service may send until the deadline", () => {
    const cause = new ClientError("network_failed", "lost");
    expect(pendingOf(failed({ cause, facts: { nonce: "7", deadline: "1700000000" } }))).to.deep.equal({
      words: "It failed.",
      deadlineMs: 1_700_000_000_000,
    });
  });

  it("takes for pending what the wallet's node may have taken without an answer", () => {
    const lost = makeError("late", "TIMEOUT", { operation: "send", reason: "timeout" });
    expect(pendingOf(sendingErrorOf(lost))?.words).to.include("the transaction may have been sent");
  });

  it("takes for pending nothing that was refused, declined or is on chain", () => {
    const transaction = {} as never;
    const reverted = makeError("no", "CALL_EXCEPTION", { transaction } as never);
    for (const error of [
      new Error("another"),
      new ClientError("wallet_declined", "no"),
      new ClientError("client_timed_out", "a read"),
      sendingErrorOf(makeError("low", "INSUFFICIENT_FUNDS", { transaction })),
      sendingErrorOf(new Error("refused")),
      failed({ cause: reverted, facts: { transaction_hash: HASH } }),
      failed({ facts: { transaction_hash: HASH } }),
      // The service sent the call, and it was reverted.
      failed({ facts: { transaction_hash: HASH, nonce: "7" } }),
    ])
      expect(pendingOf(error), error.message).to.equal(undefined);
  });
});
