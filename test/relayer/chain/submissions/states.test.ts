import { expect } from "chai";
import { hasOutcome, OPEN_STATES, SUBMISSION_STATES } from "../../../../relayer/chain/submissions/states";

describe("states of a submission", () => {
  it("are open or have an outcome, never both", () => {
    for (const state of SUBMISSION_STATES)
      expect(hasOutcome(state), state).to.equal(!(OPEN_STATES as readonly string[]).includes(state));
  });
});
