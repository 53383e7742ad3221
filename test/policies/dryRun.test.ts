/** The dashboard's dry run of a policy says what the policy's own code does. */
import { expect } from "chai";
import * as fc from "fast-check";
import { Interface } from "ethers";
import { makePolicy, type Policy } from "../../client/policies";
import { refusalOf } from "../../dashboard/screens/policies/dryRun";
import { count, SEED } from "../support/counts";
import { ALICE, BOB, MALLORY, PKP, evaluator } from "../support/policies";

const TOKEN = new Interface(["function transfer(address,uint256)", "function approve(address,uint256)"]);

describe("the dry run of policies", function () {
  this.timeout(60_000);

  const data = fc.oneof(
    fc.constant("0x"),
    fc
      .tuple(
        fc.constantFrom("transfer", "approve"),
        fc.constantFrom(ALICE, BOB, MALLORY),
        fc.bigInt({ min: 0n, max: 20n }),
      )
      .map(([name, to, amount]) => TOKEN.encodeFunctionData(name as "transfer", [to, amount])),
    fc.constant(`${TOKEN.encodeFunctionData("transfer", [ALICE, 1n])}00`),
  );
  const tried = fc.record({
    to: fc.constantFrom(ALICE, BOB, MALLORY),
    value: fc.bigInt({ min: 0n, max: 20n }),
    data,
    hour: fc.integer({ min: 0, max: 23 }),
  });

  async function agrees(policy: Policy): Promise<void> {
    // Each with the whole of its budgets.
    const evaluate: ReturnType<typeof evaluator> = (...params) => evaluator(policy)(...params);
    const base = { type: 2, chainId: 1, nonce: 0, gasLimit: 21_000, maxFeePerGas: 1, maxPriorityFeePerGas: 1 };
    await fc.assert(
      fc.asyncProperty(tried, async (one) => {
        const { to, value, data: calldata, hour } = one;
        const transaction = { ...base, to, value: String(value), data: calldata };
        const { signed } = await evaluate({ pkpId: PKP, transaction }, hour);
        expect(refusalOf(policy, one) === undefined).to.equal(signed.length === 1);
      }),
      { seed: SEED, numRuns: count(200, 5_000) },
    );
  }

  it("agrees on transfers, also over midnight", async () => {
    await agrees(await makePolicy("transfer-limits", { chain: 1, to: [ALICE, BOB], max: 10, hours: [22, 6] }));
    const budgets = [{ name: "daily", amount: "value", limit: "5", window: "day" as const }];
    await agrees(await makePolicy("transfer-limits", { chain: 1, to: [ALICE], max: 10, budgets }));
  });

  it("agrees on calls", async () => {
    const call = {
      to: MALLORY,
      function: "transfer(address,uint256)",
      args: [{ in: [ALICE] }, { min: 2, max: 10 }],
      max: 5,
    };
    await agrees(await makePolicy("contract-calls", { chain: 1, calls: [call], hours: [8, 18] }));
    const budgets = [{ name: "daily", amount: `${call.function} 2`, limit: "5", window: "day" as const }];
    const calls = [call, { ...call, function: "approve(address,uint256)" }];
    await agrees(await makePolicy("contract-calls", { chain: 1, calls, budgets }));
  });
});
