import { expect } from "chai";
import { viewOf } from "../../../../relayer/chain/reads/submissionView";
import type { CarriedWrite } from "../../../../relayer/chain/submissions/rows";

const FAILURE = { code: "unknown_group", detail: "", facts: {} };
const shown = (
  state: CarriedWrite["state"],
  ofTransaction: CarriedWrite["carrier_state"],
  facts: Partial<CarriedWrite> = {},
): string =>
  viewOf({
    before: null,
    result: null,
    error: null,
    ...facts,
    state,
    ...{ carrier_state: ofTransaction, hash: null, block_number: null, block_hash: null },
  } as CarriedWrite).state;

describe("the state that a caller sees", () => {
  it("is the transaction's, until the write has its outcome", () => {
    expect(["reserved", "signed", "pending"].map((state) => shown("carried", state as "signed"))).to.deep.equal([
      "reserved",
      "signed",
      "sent",
    ]);
    expect([shown("done", "mined"), shown("done", "confirmed")]).to.deep.equal(["mined", "confirmed"]);
    expect([shown("failed", "confirmed"), shown("abandoned", "mined")]).to.deep.equal(["failed", "expired"]);
  });

  it("starts anew for a write that its transaction did not carry out", () => {
    for (const [state, of] of [
      ["carried", "mined"],
      ["waiting", "confirmed"],
      ["waiting", "displaced"],
    ] as const)
      expect(shown(state, of)).to.equal("reserved");
  });

  it("is `changed` only where the outcome differs from one before a reorg", () => {
    const before = { result: { group_id: "1" } };
    expect(shown("done", "mined", { before, result: { group_id: "1" } })).to.equal("mined");
    expect(shown("done", "mined", { before, result: { group_id: "2" } })).to.equal("changed");
    expect(shown("failed", "mined", { before, error: FAILURE })).to.equal("changed");
    expect(shown("failed", "mined", { before: { error: FAILURE }, error: FAILURE })).to.equal("failed");
  });

  it("has errors say that the write was charged only where it was", () => {
    const error = { ...FAILURE, facts: { charged: true, group_id: "1" } };
    const write = { state: "failed", before: { error }, error, carrier_state: "mined", hash: null, block_number: null };
    const factsOf = (facts: Partial<CarriedWrite>) => {
      const { error: now, before } = viewOf({ ...write, ...facts } as CarriedWrite);
      return [now?.facts, before?.error?.facts];
    };
    const uncharged = { group_id: "1" };
    expect(factsOf({ billed: true, charged: true })).to.deep.equal([error.facts, error.facts]);
    expect(factsOf({ billed: true, charged: false })).to.deep.equal([uncharged, error.facts]);
    expect(factsOf({ billed: false, charged: false })).to.deep.equal([uncharged, uncharged]);
  });
});
