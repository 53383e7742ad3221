/** Signatures with a PKP's secp256k1 key: exact formats, recovered with ethers; invalid arguments named. */
import { expect } from "chai";
import { SigningKey, Transaction, recoverAddress, verifyMessage, verifyTypedData } from "ethers";
import fc from "fast-check";
import { SEED, count } from "../../support/counts";
import { PKP, UNKNOWN, ops, refusal, value } from "../../support/scriptedOps";

describe("signing ops", () => {
  it("signMessage signs any text as EIP-191, as 65 bytes with v 27 or 28", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme" }), async (message) => {
        const signature = await value("signMessage", { pkpId: PKP, message });
        expect(signature).to.match(/^0x[0-9a-f]{128}(1b|1c)$/);
        expect(verifyMessage(message, signature)).to.equal(PKP);
      }),
      { seed: SEED, numRuns: count(50, 1_000) },
    );
  });

  it("signDigest signs the 32 bytes unchanged", async () => {
    const digest = `0x${"ab".repeat(32)}`;
    const signature = await value("signDigest", { pkpId: PKP, digest });
    expect(recoverAddress(digest, signature)).to.equal(PKP);
    for (const bad of ["0x", `0x${"ab".repeat(31)}`, `0x${"ab".repeat(33)}`, "ab".repeat(32), 5]) {
      expect(await refusal("signDigest", { pkpId: PKP, digest: bad })).to.equal("invalid_arguments");
    }
  });

  it("signTypedData signs EIP-712, with or without EIP712Domain among the types", async () => {
    const domain = { name: "A test", version: "1", chainId: "31337", verifyingContract: UNKNOWN };
    const types = {
      Mail: [
        { name: "to", type: "Person" },
        { name: "value", type: "uint256" },
      ],
      Person: [{ name: "name", type: "string" }],
    };
    const message = { to: { name: "Ann" }, value: "12345678901234567890" };
    const EIP712Domain = [
      { name: "name", type: "string" },
      { name: "version", type: "string" },
      { name: "chainId", type: "uint256" },
      { name: "verifyingContract", type: "address" },
    ];
    for (const given of [types, { EIP712Domain, ...types }]) {
      const signature = await value("signTypedData", {
        pkpId: PKP,
        domain,
        types: given,
        message,
        primaryType: "Mail",
      });
      expect(verifyTypedData(domain, types, message, signature)).to.equal(PKP);
    }
    expect(await refusal("signTypedData", { pkpId: PKP, domain, types, message, primaryType: "Person" })).to.equal(
      "invalid_arguments",
    );
    expect(
      await refusal("signTypedData", {
        pkpId: PKP,
        domain,
        types: { Mail: [{ name: "to", type: "Nowhere" }] },
        message,
      }),
    ).to.equal("invalid_arguments");
    expect(await refusal("signTypedData", { pkpId: PKP, domain, types, message: {} })).to.equal("invalid_arguments");
  });

  it("signTypedData takes true and false for a bool, nothing that only looks like them", async () => {
    const domain = { name: "A test" };
    const types = { Vote: [{ name: "for", type: "bool[]" }] };
    const of = (given: unknown) => ({ pkpId: PKP, domain, types, message: { for: [given] } });
    for (const given of [true, false])
      expect(verifyTypedData(domain, types, { for: [given] }, await value("signTypedData", of(given)))).to.equal(PKP);
    for (const given of ["0", "false", "", 0, 1, null, {}])
      expect(await refusal("signTypedData", of(given)), JSON.stringify(given)).to.equal("invalid_arguments");
  });

  it("signTypedData refuses an EIP712Domain that is not the domain's: wallets would sign another digest", async () => {
    const domain = { name: "A test", chainId: "31337", salt: null };
    const types = { Mail: [{ name: "value", type: "uint256" }] };
    const [name, chainId] = [
      { name: "name", type: "string" },
      { name: "chainId", type: "uint256" },
    ];
    const signed = (EIP712Domain: object[]): Promise<string> =>
      refusal("signTypedData", { pkpId: PKP, domain, types: { EIP712Domain, ...types }, message: { value: "1" } });
    expect(await signed([name, chainId])).to.equal("allowed");
    for (const other of [
      [],
      [name],
      [chainId, name],
      [name, { ...chainId, type: "string" }],
      [name, chainId, { name: "salt", type: "bytes32" }],
      [name, chainId, { name: "other", type: "string" }],
    ])
      expect(await signed(other), JSON.stringify(other)).to.equal("invalid_arguments");
  });

  const common = {
    chainId: 1,
    nonce: 7,
    gasLimit: "21000",
    to: UNKNOWN.toLowerCase(),
    value: "0xde0b6b3a7640000",
    data: "0x1234",
  };
  const kinds: Record<string, object> = {
    legacy: { ...common, type: 0, gasPrice: "1000000000" },
    "with an access list": {
      ...common,
      type: 1,
      gasPrice: 5,
      accessList: [{ address: UNKNOWN, storageKeys: [`0x${"11".repeat(32)}`] }],
    },
    "with a priority fee": { ...common, type: 2, maxFeePerGas: "100", maxPriorityFeePerGas: "3" },
    "with blobs": {
      ...common,
      type: 3,
      maxFeePerGas: "100",
      maxPriorityFeePerGas: "3",
      maxFeePerBlobGas: "7",
      blobVersionedHashes: [`0x01${"ab".repeat(31)}`],
    },
    "that sets code": {
      ...common,
      type: 4,
      maxFeePerGas: "100",
      maxPriorityFeePerGas: "3",
      authorizationList: [
        {
          address: UNKNOWN,
          chainId: "1",
          nonce: "0",
          signature: new SigningKey(`0x${"11".repeat(32)}`).sign(`0x${"22".repeat(32)}`).serialized,
        },
      ],
    },
    "that makes a contract": { ...common, to: null, type: 2, maxFeePerGas: "100", maxPriorityFeePerGas: "3" },
  };
  for (const [name, transaction] of Object.entries(kinds)) {
    it(`signTransaction returns a raw transaction ${name}, from the PKP and unchanged`, async () => {
      const parsed = Transaction.from(await value("signTransaction", { pkpId: PKP, transaction }));
      const expected = Transaction.from(
        Object.fromEntries(
          Object.entries(transaction).map(([key, item]) => [
            key,
            key === "to" && typeof item === "string" ? UNKNOWN : item,
          ]),
        ),
      );
      expect(parsed.from).to.equal(PKP);
      expect(parsed.unsignedSerialized).to.equal(expected.unsignedSerialized);
      expect(parsed.signature?.serialized.length).to.equal(132);
    });
  }

  it("signTransaction signs every field that it is given, whether a type is named or not", async () => {
    const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
      fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, arbitrary);
    const wei = maybe(fc.integer({ min: 1, max: 9 }));
    const fields = fc.record({
      type: maybe(fc.integer({ min: 0, max: 4 })),
      ...{ gasPrice: wei, maxFeePerGas: wei, maxPriorityFeePerGas: wei, maxFeePerBlobGas: wei },
      accessList: maybe(fc.constant([{ address: UNKNOWN, storageKeys: [`0x${"11".repeat(32)}`] }])),
      blobVersionedHashes: maybe(fc.constant([`0x01${"ab".repeat(31)}`])),
    });
    let allowed = 0;
    const check = async (given: object): Promise<void> => {
      const named = Object.fromEntries(Object.entries(given).filter(([, each]) => each !== undefined));
      const answer = await ops({
        name: "signTransaction",
        args: JSON.stringify({ pkpId: PKP, transaction: { ...common, ...named } }),
      });
      if (!answer.ok) return;
      allowed += 1;
      const signed = Transaction.from(JSON.parse(answer.value) as string) as unknown as Record<string, unknown>;
      for (const [name, each] of Object.entries(named))
        if (typeof each === "number") expect(Number(signed[name]), name).to.equal(each);
        else expect(signed[name], name).to.have.length(1);
    };
    await fc.assert(fc.asyncProperty(fields, check), { seed: SEED, numRuns: count(300, 3_000) });
    expect(allowed).to.be.above(20);
  });

  it("signTransaction names the invalid field", async () => {
    const fee = { ...common, type: 2, maxFeePerGas: 1, maxPriorityFeePerGas: 1 };
    expect(await refusal("signTransaction", { pkpId: PKP, transaction: { ...fee, from: PKP } })).to.equal("allowed");
    const { chainId: _chainId, ...chainless } = fee;
    const { to: _to, data: _data, ...nowhere } = fee;
    for (const transaction of [
      { ...fee, from: UNKNOWN },
      chainless,
      nowhere,
      { ...nowhere, to: null, data: "0x" },
      { ...fee, chainId: 0 },
      { ...fee, type: 3 },
      { ...fee, type: 4 },
      { ...fee, type: 5 },
      { ...fee, type: 3, blobVersionedHashes: [`0x01${"ab".repeat(31)}`] },
      { ...fee, type: 3, maxFeePerBlobGas: 1, blobVersionedHashes: [] },
      { ...fee, type: 3, maxFeePerBlobGas: 1, blobVersionedHashes: [`0x02${"ab".repeat(31)}`] },
      { ...fee, type: 3, maxFeePerBlobGas: 1, blobVersionedHashes: [`0x01${"ab".repeat(31)}`], to: null },
      { ...fee, maxFeePerBlobGas: 1 },
      { ...fee, authorizationList: [] },
      { ...fee, type: 4, authorizationList: [{ address: UNKNOWN, chainId: 1, nonce: 0 }] },
      { ...fee, type: 4, authorizationList: [{ address: UNKNOWN, chainId: 1, nonce: 0, signature: "0x12" }] },
      { ...fee, gas: 1 },
      { ...fee, nonce: 1.5 },
      { ...fee, to: "nobody" },
      { ...fee, value: "1e18" },
    ]) {
      expect(await refusal("signTransaction", { pkpId: PKP, transaction })).to.equal("invalid_arguments");
    }
  });
});
