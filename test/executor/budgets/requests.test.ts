/** Leases that the relayer is asked to send, and what it says of them. */
import { expect } from "chai";
import { LeaseRequests } from "../../../executor/budgets/requests";
import type { Hash32 } from "../../../protocol/ids";
import { BUDGET, PAYER } from "../../support/budgetWorld";
import { refusal } from "../../support/refusal";

const idOf = (n: number): Hash32 => `0x${n.toString(16).padStart(64, "0")}` as Hash32;
const codeOf = (requests: LeaseRequests, id: Hash32): string => {
  try {
    return requests.calldata(id).slice(0, 2);
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe("requests of leases", () => {
  it("are signed while they may be sent; not once they are said not to be, nor kept", async () => {
    const requests = new LeaseRequests();
    const terms = (n: number) => ({ budget: BUDGET, amount: 1n, limit: 8n, id: idOf(n) });
    const [sent, failed] = [requests.send(terms(1), PAYER), refusal(requests.send(terms(2), PAYER))];
    const { leases } = await requests.next(new AbortController().signal);
    expect(leases.map(({ id }) => id).sort()).to.deep.equal([idOf(1), idOf(2)]);
    requests.outcome({ id: idOf(1) });
    requests.outcome({ id: idOf(2), failed: { code: "insufficient_credit", detail: "The account has 0 cents." } });
    await sent;
    expect((await failed).code).to.equal("insufficient_credit");
    expect([codeOf(requests, idOf(1)), codeOf(requests, idOf(2))]).to.deep.equal(["0x", "not_authorized"]);
  });
});
