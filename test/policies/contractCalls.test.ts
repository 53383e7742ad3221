/** The policy `contract-calls`: no input gets a signature outside it. */
import { expect } from "chai";
import * as fc from "fast-check";
import { AbiCoder, Interface, id } from "ethers";
import { makePolicy } from "../../client/policies";
import { count } from "../support/counts";
import { ALICE, BOB, MALLORY, PKP, evaluator, odd, transactionOf } from "../support/policies";

describe("contract-calls", function () {
  this.timeout(120_000);

  const token = new Interface([
    "function transfer(address to, uint256 amount)",
    "function approve(address,uint256)",
    "function batch(address[] to, bytes data)",
  ]);
  const calls = [
    { to: MALLORY, function: "transfer(address,uint256)", args: [{ in: [ALICE, BOB] }, { min: 1, max: 1000 }] },
    { to: MALLORY, function: "batch(address[],bytes)", args: [{}, {}] },
  ];
  const base = {
    type: 2,
    chainId: 1,
    nonce: 0,
    gasLimit: 50_000,
    to: MALLORY,
    maxFeePerGas: 1,
    maxPriorityFeePerGas: 1,
  };
  const transfer = (to: string, amount: bigint): string => token.encodeFunctionData("transfer", [to, amount]);

  it("signs only the canonical form of allowed arguments: fuzzed bytes, dirty bits, tails, lengths", async () => {
    const evaluate = evaluator(await makePolicy("contract-calls", { chain: 1, calls }));
    const good = transfer(ALICE, 1000n);
    const flips = fc.array(fc.tuple(fc.nat(good.length - 3), fc.constantFrom(..."0123456789abcdefABCDEF")), {
      maxLength: 3,
    });
    const mutated = fc
      .tuple(flips, fc.constantFrom("", "00", "0000", "ff".repeat(32)), fc.nat(8))
      .map(([changes, tail, cut]) => {
        const letters = [...good];
        for (const [at, letter] of changes) letters[at + 2] = letter;
        return letters.slice(0, letters.length - (tail === "" ? cut : 0)).join("") + tail;
      });
    const amounts = fc
      .tuple(fc.constantFrom(ALICE, BOB, MALLORY), fc.bigInt({ min: 0n, max: 2000n }))
      .map(([to, amount]) => transfer(to, amount));
    let allowed = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof(mutated, amounts, odd), odd, async (data, value) => {
        const { signed } = await evaluate({
          pkpId: PKP,
          transaction: { ...base, data, ...(typeof value === "number" ? { value } : {}) },
        });
        for (const one of signed) {
          const transaction = transactionOf(one);
          const [to, amount] = AbiCoder.defaultAbiCoder().decode(
            ["address", "uint256"],
            `0x${transaction.data.slice(10)}`,
          ) as unknown as [string, bigint];
          expect(transaction.data).to.equal(transfer(to, amount));
          expect([ALICE, BOB]).to.include(to.toLowerCase());
          expect(
            amount >= 1n && amount <= 1000n && transaction.value === 0n && transaction.to?.toLowerCase() === MALLORY,
          ).to.equal(true);
          allowed += 1;
        }
      }),
      { numRuns: count(300, 50_000), seed: 18 },
    );
    expect(allowed).to.be.greaterThan(10);
  });

  it("refuses other functions, other contracts, and tails that overlap", async () => {
    const evaluate = evaluator(await makePolicy("contract-calls", { chain: 1, calls }));
    const signs = async (more: object): Promise<boolean> =>
      (await evaluate({ pkpId: PKP, transaction: { ...base, ...more } })).signed.length > 0;
    expect(await signs({ data: transfer(ALICE, 1n) })).to.equal(true);
    expect(await signs({ data: token.encodeFunctionData("batch", [[ALICE], "0x1234"]) })).to.equal(true);
    expect(await signs({ data: token.encodeFunctionData("approve", [ALICE, 1n]) })).to.equal(false);
    expect(await signs({ data: transfer(ALICE, 1n), to: ALICE })).to.equal(false);
    const head = id("batch(address[],bytes)").slice(0, 10);
    const word = (value: number): string => value.toString(16).padStart(64, "0");
    expect(await signs({ data: `${head}${word(64)}${word(64)}${word(0)}` }), "both tails in one place").to.equal(false);
    expect(await signs({ data: head }), "no arguments").to.equal(false);
  });
});
