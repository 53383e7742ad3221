/** The policy `transfer-limits`: no input gets a signature outside it. */
import { expect } from "chai";
import * as fc from "fast-check";
import { Wallet, id } from "ethers";
import { makePolicy } from "../../client/policies";
import { count } from "../support/counts";
import { ALICE, BOB, MALLORY, PKP, evaluator, odd, transactionOf } from "../support/policies";
import { answering, responseOf } from "../support/sandbox";

const APPROVERS = [Wallet.createRandom(), Wallet.createRandom(), Wallet.createRandom()];

describe("transfer-limits", function () {
  this.timeout(120_000);

  const valid = {
    type: 2,
    chainId: 31337,
    nonce: 1,
    gasLimit: 21_000,
    to: ALICE,
    value: "100",
    maxFeePerGas: "1000",
    maxPriorityFeePerGas: "1",
  };

  it("signs what is allowed, in the real sandbox", async () => {
    const { code } = await makePolicy("transfer-limits", { chain: 31337, to: [ALICE, BOB], max: "100" });
    const params = { pkpId: PKP, transaction: valid };
    expect(await responseOf(code, { params, ops: answering({ signTransaction: "0x01" }) })).to.equal("0x01");
  });

  it("signs nothing else, for any input", async () => {
    const evaluate = evaluator(
      await makePolicy("transfer-limits", { chain: 31337, to: [ALICE, BOB], max: "100", maxFee: "1000000000000" }),
    );
    const names = [
      ...Object.keys(valid),
      "data",
      "from",
      "gasPrice",
      "accessList",
      "authorizationList",
      "blobVersionedHashes",
      "maxFeePerBlobGas",
      "TO",
      "__proto__",
      "signature",
    ];
    const changes = fc.dictionary(fc.constantFrom(...names), odd, { maxKeys: 4 });
    let allowed = 0;
    await fc.assert(
      fc.asyncProperty(changes, odd, fc.boolean(), async (change, other, whole) => {
        const { signed } = await evaluate(
          whole ? { pkpId: PKP, transaction: { ...valid, ...change } } : { pkpId: PKP, transaction: other, ...change },
        );
        for (const one of signed) {
          const { chainId, to, value, data, gasLimit, maxFeePerGas, gasPrice, type } = transactionOf(one);
          expect([chainId, data]).to.deep.equal([31337n, "0x"]);
          expect([ALICE, BOB]).to.include(to?.toLowerCase());
          expect(
            value <= 100n &&
              [0, 1, 2].includes(type ?? -1) &&
              gasLimit * (maxFeePerGas ?? gasPrice ?? 0n) <= 10n ** 12n,
          ).to.equal(true);
          allowed += 1;
        }
      }),
      { numRuns: count(300, 50_000), seed: 17 },
    );
    expect(allowed, "the inputs include allowed ones").to.be.greaterThan(10);
  });

  it("applies its hours, also across midnight", async () => {
    const day = evaluator(await makePolicy("transfer-limits", { chain: 31337, to: [ALICE], max: 100, hours: [9, 17] }));
    const night = evaluator(
      await makePolicy("transfer-limits", { chain: 31337, to: [ALICE], max: 100, hours: [22, 6] }),
    );
    for (let hour = 0; hour < 24; hour += 1) {
      expect((await day({ pkpId: PKP, transaction: valid }, hour)).signed.length).to.equal(
        hour >= 9 && hour < 17 ? 1 : 0,
      );
      expect((await night({ pkpId: PKP, transaction: valid }, hour)).signed.length).to.equal(
        hour >= 22 || hour < 6 ? 1 : 0,
      );
    }
  });

  it(
    "requires the stated number of approvers: of this transaction, by this PKP, under " +
      "this policy, each counted once",
    async () => {
      const of = APPROVERS.map(({ address }) => address);
      const policy = await makePolicy("transfer-limits", {
        chain: 31337,
        to: [ALICE],
        max: 100,
        approvers: { of, threshold: 2 },
      });
      const evaluate = evaluator(policy);
      const text =
        (await evaluate({ pkpId: PKP, transaction: valid, approvals: [] })).error?.split("sign this text:\n")[1] ?? "";
      const sign = (message = text): string[] => APPROVERS.map((wallet) => wallet.signMessageSync(message));
      const [first = "", second = "", third = ""] = sign();
      const others = [
        text.replace("0x", "0y"),
        text.replace(/under.*/, `under ${id("other")}`),
        text.replace(PKP.toLowerCase(), MALLORY),
      ].flatMap((message) => sign(message));
      const stranger = Wallet.createRandom().signMessageSync(text);
      const accepted = async (approvals: unknown, transaction: object = valid): Promise<boolean> =>
        (await evaluate({ pkpId: PKP, transaction, approvals })).signed.length > 0;
      expect(await accepted([first, third])).to.equal(true);
      expect(await accepted([second, stranger, first])).to.equal(true);
      for (const approvals of [
        [first, first],
        [first, first.toUpperCase().replace("0X", "0x")],
        [first, stranger],
        others,
        [first],
        "x",
        undefined,
        {},
        [[first], [second]],
        Array(65).fill(second),
      ]) {
        expect(await accepted(approvals), JSON.stringify(approvals)).to.equal(false);
      }
      expect(await accepted([first, second], { ...valid, value: "99" }), "another transaction").to.equal(false);
    },
  );
});
