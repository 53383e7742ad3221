import { expect } from "chai";
import fc from "fast-check";
import { OP_NAMES } from "../../../protocol/ops";
import { SEED, count } from "../../support/counts";
import { opsBed } from "../../support/ops";

const { pkpId, codeOf, answer } = opsBed();
const HALF = "\ud800";
const transaction = { chainId: 1, nonce: 0, gasLimit: 21_000, to: "0x000000000000000000000000000000000000dEaD" };

describe("attack: runs that are free because a value throws in the keyholder", () => {
  const bad: Record<string, [op: string, args: object]> = {
    "half a surrogate pair as a message": ["signMessage", { message: HALF }],
    "half a surrogate pair to encrypt": ["Encrypt", { message: `a${HALF}b` }],
    "half a surrogate pair in typed data": [
      "signTypedData",
      { domain: {}, types: { M: [{ name: "t", type: "string" }] }, message: { t: HALF } },
    ],
    "half a surrogate pair in a type's name": [
      "signTypedData",
      { domain: {}, types: { [HALF]: [{ name: "t", type: "string" }] }, message: { t: "" } },
    ],
    "half a surrogate pair in the domain": ["signTypedData", { domain: { name: HALF }, types: { M: [] }, message: {} }],
    "a priority fee above the maximum": [
      "signTransaction",
      { transaction: { ...transaction, type: 2, maxFeePerGas: 1, maxPriorityFeePerGas: 2 } },
    ],
    "type 0 with maxFeePerGas": ["signTransaction", { transaction: { ...transaction, type: 0, maxFeePerGas: 1 } }],
    "type 0 with an access list": [
      "signTransaction",
      { transaction: { ...transaction, type: 0, gasPrice: 1, accessList: [], maxFeePerGas: 1 } },
    ],
    "type 1 with maxFeePerGas": ["signTransaction", { transaction: { ...transaction, type: 1, maxFeePerGas: 1 } }],
    "type 2 with a gas price, which would be left out": [
      "signTransaction",
      { transaction: { ...transaction, type: 2, gasPrice: 1 } },
    ],
    "a quantity of 78 digits": ["signTransaction", { transaction: { ...transaction, type: 2, value: "9".repeat(78) } }],
    "a gas limit of 78 digits": [
      "signTransaction",
      { transaction: { ...transaction, type: 2, gasLimit: "9".repeat(78) } },
    ],
    "a chain id too large for the signature of type 0": [
      "signTransaction",
      { transaction: { ...transaction, type: 0, gasPrice: 1, chainId: (2n ** 256n - 1n).toString() } },
    ],
    "an address of an access list that is none": [
      "signTransaction",
      { transaction: { ...transaction, type: 1, accessList: [{ address: "nobody", storageKeys: [] }] } },
    ],
  };
  for (const [what, [op, args]] of Object.entries(bad)) {
    it(`${what} is invalid_arguments`, async () => {
      expect(await codeOf(op, { pkpId, ...args })).to.equal("invalid_arguments");
    });
  }

  it("an error message repeats at most a few hundred characters of its subject", async () => {
    const given = await answer("signTypedData", {
      pkpId,
      domain: {},
      types: { ["n".repeat(9_000)]: [{ name: 5 }] },
      message: {},
    });
    expect(given.ok ? "" : given.message).to.have.length.within(1, 600);
  });

  it("no argument of any shape is reported as the service's fault", async () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(HALF, "0x", "", "0x00", "9".repeat(78), `0x${"f".repeat(64)}`, "__proto__"),
    );
    const value = fc.oneof(
      text,
      fc.integer(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.object({ key: text, values: [text, fc.integer()], maxDepth: 3 }),
    );
    const fields = fc.array(
      fc.record({
        name: text,
        type: fc.oneof(text, fc.constantFrom("string", "uint8", "bytes32", "A", "B[]", "A[2]", "int7")),
      }),
      {
        maxLength: 4,
      },
    );
    const quantity = fc.oneof(fc.maxSafeNat(), fc.constantFrom("0", "1", "9".repeat(78), `0x${"f".repeat(64)}`, "-1"));
    const shaped: Record<string, fc.Arbitrary<object>> = {
      signMessage: fc.record({ message: value }),
      signTypedData: fc.record({
        domain: fc.dictionary(fc.oneof(text, fc.constantFrom("name", "chainId", "salt", "verifyingContract")), value),
        types: fc.dictionary(fc.oneof(text, fc.constantFrom("A", "B", "EIP712Domain")), fields),
        message: fc.object({ maxDepth: 4 }),
      }),
      signTransaction: fc.record({
        transaction: fc.record(
          {
            type: fc.constantFrom(0, 1, 2, 3),
            chainId: quantity,
            nonce: quantity,
            gasLimit: quantity,
            value: quantity,
            gasPrice: quantity,
            maxFeePerGas: quantity,
            maxPriorityFeePerGas: quantity,
            to: fc.oneof(text, fc.constant(transaction.to)),
            data: text,
            accessList: fc.array(
              fc.record({
                address: fc.oneof(text, fc.constant(transaction.to)),
                storageKeys: fc.array(text, { maxLength: 2 }),
              }),
              {
                maxLength: 2,
              },
            ),
          },
          { requiredKeys: [] },
        ),
      }),
      signDigest: fc.record({ digest: value }),
      Encrypt: fc.record({ message: value }),
      Decrypt: fc.record({
        ciphertext: fc.oneof(
          value,
          fc.base64String().map((body) => `kw1.${body}`),
        ),
      }),
      getPrivateKey: fc.constant({}),
      getActionPrivateKey: fc.object({ maxDepth: 1 }),
      getActionPublicKey: fc.record({ ipfsId: value }),
      getActionWalletAddress: fc.record({ ipfsId: value }),
    };
    const anyCall = fc.oneof(
      ...OP_NAMES.map((name) => fc.tuple(fc.constant(name), fc.oneof(shaped[name] ?? fc.object(), fc.object()))),
    );
    await fc.assert(
      fc.asyncProperty(anyCall, fc.boolean(), async ([name, args], withPkp) => {
        // A rejection makes the run free.
        const given = await answer(name, withPkp ? { pkpId, ...args } : args);
        if (!given.ok) expect(["invalid_arguments", "limit_exceeded", "decryption_failed"]).to.include(given.code);
      }),
      { seed: SEED, numRuns: count(500, 20_000) },
    );
  });
});
