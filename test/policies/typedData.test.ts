/** The policy `typed-data`: no input gets a signature outside it. */
import { expect } from "chai";
import * as fc from "fast-check";
import { ethers } from "ethers";
import { makePolicy } from "../../client/policies";
import { count } from "../support/counts";
import { ALICE, MALLORY, PKP, evaluator, odd } from "../support/policies";

describe("typed-data", function () {
  this.timeout(120_000);

  const types = {
    Permit: [
      { name: "owner", type: "address" },
      { name: "spender", type: "address" },
      { name: "value", type: "uint256" },
      { name: "tags", type: "string[]" },
      { name: "inner", type: "Inner" },
    ],
    Inner: [{ name: "flag", type: "bool" }],
  };
  const domain = { name: "Token", version: "1", chainId: 1, verifyingContract: MALLORY };
  const message = { owner: PKP, spender: ALICE, value: "5", tags: ["a"], inner: { flag: true } };
  const policy = () =>
    makePolicy("typed-data", {
      domains: [domain],
      primaryType: "Permit",
      types,
      fields: {
        spender: { in: [ALICE] },
        value: { max: 10 },
        tags: { in: ["a", "b"] },
        "inner.flag": { in: ["true"] },
      },
    });

  it("signs what is allowed, and ignores the caller's own EIP712Domain", async () => {
    const evaluate = evaluator(await policy());
    const given = {
      pkpId: PKP,
      domain: { ...domain, chainId: "0x1", verifyingContract: MALLORY.toUpperCase().replace("0X", "0x") },
      types: { ...types, EIP712Domain: [] },
      message,
    };
    expect((await evaluate(given)).signed).to.have.length(1);
  });

  it("signs nothing else, for any domain, types or message", async () => {
    const evaluate = evaluator(await policy());
    const change = (of: object): fc.Arbitrary<object> =>
      fc
        .dictionary(
          fc.constantFrom(...Object.keys(of), "salt", "extra", "__proto__"),
          fc.oneof(
            odd,
            fc.constantFrom<unknown>(["b", "a"], ["c"], { flag: "true" }, { flag: false }, types.Inner, [
              { name: "owner", type: "uint256" },
            ]),
          ),
          { maxKeys: 2 },
        )
        .map((more) => ({ ...of, ...more }));
    let allowed = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.constant(domain), change(domain)),
        fc.oneof(fc.constant(types), change(types)),
        change(message),
        fc.constantFrom(undefined, "Permit", "Inner", 1),
        async (asked, given, fields, primaryType) => {
          const { signed } = await evaluate({
            pkpId: PKP,
            domain: asked,
            types: given,
            message: fields,
            primaryType,
          });
          for (const { args } of signed) {
            const {
              domain: used,
              types: how,
              message: what,
            } = args as unknown as { domain: typeof domain; types: typeof types; message: typeof message };
            expect(ethers.TypedDataEncoder.hashDomain(used)).to.equal(ethers.TypedDataEncoder.hashDomain(domain));
            expect(how).to.deep.equal(types);
            expect(what.spender.toLowerCase()).to.equal(ALICE);
            expect(
              BigInt(what.value) <= 10n && what.tags.every((tag) => ["a", "b"].includes(tag)) && what.inner.flag,
            ).to.equal(true);
            expect(Object.keys(what).sort()).to.deep.equal(Object.keys(message).sort());
            allowed += 1;
          }
        },
      ),
      { numRuns: count(300, 50_000), seed: 19 },
    );
    expect(allowed).to.be.greaterThan(10);
  });
});
