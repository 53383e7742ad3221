/** Ops on Ed25519, BIP-340 and P-256, verified by a second implementation. */
import { expect } from "chai";
import { computeAddress } from "ethers";
import fc from "fast-check";
import { taprootOutputKey } from "../../../executor/keys/bip340";
import { p256Digest } from "../../../executor/keys/p256";
import { CURVES } from "../../../protocol/curves";
import { SEED, count } from "../../support/counts";
import { bytes, hexOf, nobleVerify } from "../../support/nobleKeys";
import { CID, OTHER_CID, PKP, UNKNOWN, answer, refusal, value } from "../../support/scriptedOps";

describe("ops on the other curves", () => {
  const digest = `0x${"ab".repeat(32)}`;
  const keyOn = (curve: string): Promise<string> => value("getPublicKey", { pkpId: PKP, curve });

  it("getPublicKey returns the PKP's key on each curve, and lists the curves for an unknown one", async () => {
    const keys = await Promise.all(CURVES.map(keyOn));
    expect(computeAddress(keys[0] ?? "")).to.equal(PKP);
    expect(keys.map((key) => key.length)).to.deep.equal([132, 66, 66, 132]);
    for (const curve of ["P-256", "", 5, null, "__proto__"]) {
      const given = await answer("getPublicKey", { pkpId: PKP, curve });
      expect(given).to.deep.include({ ok: false, code: "invalid_arguments" });
      expect((given as { message: string }).message).to.contain("secp256k1, ed25519, bip340, p256");
    }
  });

  it("signEd25519 signs text and bytes unchanged, and refuses ambiguous text", async () => {
    const key = await keyOn("ed25519");
    for (const [message, meant] of [
      ["hello ä", Buffer.from("hello ä")],
      ["", Buffer.alloc(0)],
      ["0x", Buffer.from("0x")],
      ["0xabc", Buffer.from("0xabc")],
      [{ bytes: "0x00ff" }, Buffer.from([0, 255])],
      [{ bytes: "0x" }, Buffer.alloc(0)],
    ] as const) {
      const signature = await value("signEd25519", { pkpId: PKP, message });
      expect(signature).to.match(/^0x[0-9a-f]{128}$/);
      expect(nobleVerify("ed25519", key, signature, meant)).to.equal(true);
    }
    for (const message of ["0xabcd", { bytes: "abcd" }, { bytes: "0xabc" }, { text: "m" }, 5, null, undefined, ["m"]]) {
      expect(await refusal("signEd25519", { pkpId: PKP, message })).to.equal("invalid_arguments");
    }
  });

  it("signSchnorr signs with the key itself, or with a taproot output key", async () => {
    const key = await keyOn("bip340");
    const root = `0x${"cd".repeat(32)}`;
    const verifies = async (args: object, verifier: Buffer): Promise<boolean> =>
      nobleVerify(
        "bip340",
        hexOf(verifier),
        await value("signSchnorr", { pkpId: PKP, digest, ...args }),
        bytes(digest),
      );
    expect(await verifies({}, bytes(key))).to.equal(true);
    expect(await verifies({ merkleRoot: "0x" }, taprootOutputKey(bytes(key), Buffer.alloc(0)))).to.equal(true);
    expect(await verifies({ merkleRoot: root }, taprootOutputKey(bytes(key), bytes(root)))).to.equal(true);
    expect(await verifies({ merkleRoot: root }, bytes(key))).to.equal(false);
    for (const bad of [
      { digest: "0x" },
      { digest: `${digest}00` },
      { digest: 5 },
      { merkleRoot: "0xab" },
      { merkleRoot: null },
      { merkleRoot: "" },
      { aux: digest },
    ]) {
      expect(await refusal("signSchnorr", { pkpId: PKP, digest, ...bad })).to.equal("invalid_arguments");
    }
  });

  it("signP256 signs a digest or a message's SHA-256, and requires exactly one of them", async () => {
    const key = await keyOn("p256");
    const ofDigest = await value("signP256", { pkpId: PKP, digest });
    expect(nobleVerify("p256", key, ofDigest, bytes(digest))).to.equal(true);
    expect(await value("signP256", { pkpId: PKP, digest })).to.equal(ofDigest);
    for (const [message, meant] of [
      ["a.b", Buffer.from("a.b")],
      [{ bytes: "0x0102" }, Buffer.from([1, 2])],
    ] as const) {
      expect(nobleVerify("p256", key, await value("signP256", { pkpId: PKP, message }), p256Digest(meant))).to.equal(
        true,
      );
    }
    for (const bad of [
      {},
      { digest, message: "m" },
      { digest: "0x12" },
      { message: "0x12" },
      { message: 1 },
      { digest, low: true },
    ]) {
      expect(await refusal("signP256", { pkpId: PKP, ...bad })).to.equal("invalid_arguments");
    }
  });

  it("take any arguments: each gives a valid signature or a refusal that an action can catch", async () => {
    const hex = fc.uint8Array({ maxLength: 40 }).map(hexOf);
    const exact = fc.uint8Array({ minLength: 32, maxLength: 32 }).map(hexOf);
    const value = fc.oneof(
      exact,
      hex,
      fc.string({ unit: "binary" }),
      fc.constantFrom("0x", "\ud800", null, NaN, -0, 2 ** 53, true, [], {}),
      fc.object(),
    );
    const field = fc.oneof(value, fc.record({ bytes: value }), fc.record({ bytes: exact, text: value }));
    const optional = { requiredKeys: [] };
    const signing = {
      signEd25519: fc.record({ message: field }, optional),
      signSchnorr: fc.record({ digest: field, merkleRoot: field }, optional),
      signP256: fc.record({ message: field, digest: field }, optional),
    };
    const curve = fc.oneof(fc.constantFrom(...CURVES), value);
    const shaped: Record<string, fc.Arbitrary<object>> = {
      ...signing,
      ...Object.fromEntries(Object.entries(signing).map(([name, args]) => [`${name}AsAction`, args])),
      getPublicKey: fc.record({ curve }, optional),
      getActionPublicKey: fc.record({ ipfsId: fc.oneof(fc.constant(CID), value), curve }, optional),
    };
    const call = fc.oneof(
      ...Object.entries(shaped).map(([name, args]) =>
        fc.record({ name: fc.constant(name), args, extra: fc.option(value, { freq: 1 }) }),
      ),
    );
    const ends = new Set<string>();
    await fc.assert(
      fc.asyncProperty(call, async ({ name, args, extra }) => {
        const pkp = name.includes("Action") ? {} : { pkpId: PKP };
        const given = await answer(name, { ...pkp, ...args, ...(extra === null ? {} : { extra }) });
        ends.add(given.ok ? name : given.code);
        if (!given.ok) expect(given.code).to.be.oneOf(["invalid_arguments", "permission_denied", "limit_exceeded"]);
        else
          expect(JSON.parse(given.value)).to.match(
            name.startsWith("get") ? /^0x([0-9a-f]{64,66}|04[0-9a-f]{128})$/ : /^0x[0-9a-f]{128}$/,
          );
      }),
      { seed: SEED, numRuns: count(800, 100_000) },
    );
    expect([...ends], "the inputs include valid ones").to.include.members([
      "invalid_arguments",
      ...Object.keys(shaped),
    ]);
  });

  it("are refused for a PKP the contract denies", async () => {
    for (const [name, args] of Object.entries({
      signEd25519: { message: "m" },
      signSchnorr: { digest },
      signP256: { digest },
      getPublicKey: { curve: "p256" },
    })) {
      expect(await refusal(name, { pkpId: UNKNOWN, ...args })).to.equal("permission_denied");
    }
  });

  it("sign as the action, with keys that can be looked up by its CID", async () => {
    const keyOf = (curve: string, ipfsId: string = CID): Promise<string> =>
      value("getActionPublicKey", { ipfsId, curve });
    const signed = bytes(digest);
    expect(
      nobleVerify(
        "ed25519",
        await keyOf("ed25519"),
        await value("signEd25519AsAction", { message: { bytes: digest } }),
        signed,
      ),
    ).to.equal(true);
    expect(
      nobleVerify("bip340", await keyOf("bip340"), await value("signSchnorrAsAction", { digest }), signed),
    ).to.equal(true);
    expect(nobleVerify("p256", await keyOf("p256"), await value("signP256AsAction", { digest }), signed)).to.equal(
      true,
    );
    expect(await keyOf("secp256k1")).to.equal(await value("getActionPublicKey", { ipfsId: CID }));
    for (const curve of CURVES) expect(await keyOf(curve, OTHER_CID)).to.not.equal(await keyOf(curve));
    for (const [name, args] of [
      ["signEd25519AsAction", {}],
      ["signSchnorrAsAction", {}],
      ["signP256AsAction", {}],
      ["getActionPublicKey", { ipfsId: CID, curve: "x" }],
    ] as const) {
      expect(await refusal(name, args)).to.equal("invalid_arguments");
    }
  });
});
