/** Policies with budgets count the amount of what they sign before they sign it, from the field that they name. */
import { expect } from "chai";
import { Interface } from "ethers";
import { makePolicy, readPolicy } from "../../client/policies";
import { policySentences } from "../../dashboard/screens/policies/sentences";
import { ALICE, BOB, PKP, evaluator } from "../support/policies";

const TOKEN = "0x00000000000000000000000000000000000000c0";
const ERC20 = new Interface(["function transfer(address,uint256)", "function approve(address,uint256)"]);
const GAS = { chainId: 1, nonce: 0, gasLimit: 100_000, maxFeePerGas: 1, maxPriorityFeePerGas: 1 };
const outcomes = async (
  run: ReturnType<typeof evaluator>,
  all: readonly unknown[],
): Promise<(number | string | undefined)[]> => {
  const found: (number | string | undefined)[] = [];
  for (const params of all) {
    const { signed, error } = await run(params);
    found.push(error ?? signed.length);
  }
  return found;
};

describe("budgets of policies", function () {
  this.timeout(120_000);

  it("bound the sum of transfers, and refuse before anything is signed", async () => {
    const budgets = [{ name: "value", amount: "value", limit: "100", window: "day" as const }];
    const policy = await makePolicy("transfer-limits", { chain: 1, to: [ALICE], max: 80, budgets });
    const pay = (value: string): object => ({ pkpId: PKP, transaction: { ...GAS, to: ALICE, value } });
    expect(await outcomes(evaluator(policy), [pay("60"), pay("41"), pay("0x28"), pay("0"), pay("1")])).to.deep.equal([
      1,
      "budget_exceeded",
      1,
      1,
      "budget_exceeded",
    ]);
    expect((await readPolicy(policy.code))?.parameters["budgets"]).to.deep.equal(budgets);
  });

  it("bound the sum of fees, also of transactions that send nothing", async () => {
    const budgets = [{ name: "fee", amount: "fee", limit: "250000", window: "day" as const }];
    const shared = { chain: 1, budgets };
    const calls = [{ to: TOKEN, function: "transfer(address,uint256)", args: [{}, {}] }];
    const data = ERC20.encodeFunctionData("transfer", [ALICE, 0n]);
    const legacy = { ...GAS, maxFeePerGas: undefined, maxPriorityFeePerGas: undefined, gasPrice: 1 };
    for (const [policy, given] of [
      [await makePolicy("transfer-limits", { ...shared, to: [ALICE], max: 0 }), { to: ALICE }],
      [await makePolicy("contract-calls", { ...shared, calls }), { to: TOKEN, data }],
    ] as const) {
      const sign = (gas: object): object => ({ pkpId: PKP, transaction: { ...gas, ...given } });
      const all = [GAS, legacy, GAS, { ...GAS, gasLimit: 50_000 }, { ...GAS, gasLimit: 1 }].map(sign);
      expect(await outcomes(evaluator(policy), all)).to.deep.equal([1, 1, "budget_exceeded", 1, "budget_exceeded"]);
    }
  });

  it("are not spent by who may not use the PKP", async () => {
    const budgets = [{ name: "value", amount: "value", limit: "100", window: "day" as const }];
    const policy = await makePolicy("transfer-limits", { chain: 1, to: [ALICE], max: 100, budgets });
    const pay = (pkpId: string): object => ({ pkpId, transaction: { ...GAS, to: ALICE, value: "100" } });
    expect(await outcomes(evaluator(policy), [pay(BOB), pay(PKP)])).to.deep.equal(["permission_denied", 1]);
    const types = { Pay: [{ name: "value", type: "uint256" }] };
    const typed = { domains: [{ name: "USDC" }], primaryType: "Pay", types, budgets };
    const sign = (pkpId: string): object => ({ pkpId, domain: { name: "USDC" }, types, message: { value: "100" } });
    const signing = evaluator(await makePolicy("typed-data", typed));
    expect(await outcomes(signing, [sign(BOB), sign(PKP)])).to.deep.equal(["permission_denied", 1]);
  });

  it("count an argument of one function of a contract", async () => {
    const amount = "transfer(address,uint256) 2";
    const calls = ["transfer", "approve"].map((name) => ({
      to: TOKEN,
      function: `${name}(address,uint256)`,
      args: [{ in: [ALICE] }, {}],
    }));
    const policy = await makePolicy("contract-calls", {
      chain: 1,
      calls,
      budgets: [{ name: "usdc", amount, limit: "100", window: "day" }],
    });
    const call = (name: string, value: bigint): object => ({
      pkpId: PKP,
      transaction: { ...GAS, to: TOKEN, data: ERC20.encodeFunctionData(name, [ALICE, value]) },
    });
    const all = [call("transfer", 70n), call("approve", 1_000n), call("transfer", 31n), call("transfer", 30n)];
    expect(await outcomes(evaluator(policy), all)).to.deep.equal([1, 1, "budget_exceeded", 1]);
  });

  it("count a field of typed data", async () => {
    const types = { Pay: [{ name: "terms", type: "Terms" }], Terms: [{ name: "value", type: "uint256" }] };
    const policy = await makePolicy("typed-data", {
      domains: [{ name: "USDC" }],
      primaryType: "Pay",
      types,
      budgets: [{ name: "usdc", amount: "terms.value", limit: "100", window: "hour" }],
    });
    const sign = (value: string): object => ({
      pkpId: PKP,
      domain: { name: "USDC" },
      types,
      message: { terms: { value } },
    });
    expect(await outcomes(evaluator(policy), [sign("100"), sign("1")])).to.deep.equal([1, "budget_exceeded"]);
  });

  it("are said in units of the coin only where the coin is counted", async () => {
    const budgets = [{ name: "usd-daily", amount: "value", limit: "1000000", window: "day" as const }];
    const types = { Pay: [{ name: "value", type: "uint256" }] };
    const typed = await makePolicy("typed-data", { domains: [{ name: "USDC" }], primaryType: "Pay", types, budgets });
    const coin = await makePolicy("transfer-limits", { chain: 1, to: [ALICE], max: 80, budgets });
    const fees = [{ ...budgets[0], name: "fee", amount: "fee" }] as typeof budgets;
    const gas = await makePolicy("transfer-limits", { chain: 1, to: [ALICE], max: 80, budgets: fees });
    const said = [typed, coin, gas].map((policy) => policySentences(policy).find((one) => one.includes("together")));
    expect(said).to.deep.equal([
      "In each day together at most 1000000 of value, counted on the chain as “usd-daily”.",
      "In each day together at most 0.000000000001 of the coin, counted on the chain as “usd-daily”.",
      "In each day together at most 0.000000000001 of the coin in network fees, counted on the chain as “fee”.",
    ]);
  });

  it("are refused when they count what is no unsigned number, or one thing twice", async () => {
    const one = { name: "a", amount: "value", limit: "1", window: "day" as const };
    const make = async (budgets: object[]): Promise<string> =>
      makePolicy("transfer-limits", { chain: 1, to: [ALICE, BOB], max: 1, budgets: budgets as never }).then(
        () => "made",
        (error: unknown) => (error as Error).message,
      );
    expect(await make([one])).to.equal("made");
    for (const wrong of [{ amount: "to" }, { limit: String(2n ** 128n) }, { window: "week" }, { name: "a b" }])
      expect(await make([{ ...one, ...wrong }])).not.to.equal("made");
    expect(await make([one, one])).not.to.equal("made");
    const types = {
      A: [
        { name: "all", type: "uint8[]" },
        { name: "to", type: "address" },
        { name: "delta", type: "int8" },
      ],
    };
    for (const amount of ["all", "to", "delta", "none"]) {
      const typed = { domains: [{ name: "x" }], primaryType: "A", types, budgets: [{ ...one, amount }] };
      expect(await makePolicy("typed-data", typed).catch(() => "refused"), amount).to.equal("refused");
    }
  });
});
