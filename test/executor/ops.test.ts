/** Every op of an action: exact formats, recovered with ethers; invalid arguments named; one contract call per PKP. */
import { expect } from "chai";
import {
  SigningKey,
  Transaction,
  Wallet,
  computeAddress,
  recoverAddress,
  verifyMessage,
  verifyTypedData,
} from "ethers";
import fc from "fast-check";
import { KeywrightError } from "../../protocol/errors";
import type { AccountId, Cid, DerivationPath, Hash32, KeyId, PkpId } from "../../protocol/ids";
import type { Authorization, DecidedAhead } from "../../executor/authorize";
import type { Chain } from "../../executor/chain/chain";
import type { Decision } from "../../protocol/decision";
import { Keyring } from "../../executor/keys/keyring";
import { createOps } from "../../executor/ops/ops";
import type { OpAnswer, OpHandler } from "../../executor/sandbox/types";
import { defined } from "../../protocol/defined";
import { RUN_LIMITS } from "../../protocol/limits";
import { taprootOutputKey } from "../../executor/keys/bip340";
import { p256Digest } from "../../executor/keys/p256";
import { CURVES } from "../../protocol/curves";
import { SEED, count } from "../support/counts";
import { bytes, hexOf, nobleVerify } from "../support/nobleKeys";

const NAMESPACE = `0x${"5a".repeat(32)}` as Hash32;
const ACCOUNT = `0x${"a1".repeat(32)}` as AccountId;
const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX" as Cid;
const OTHER_CID = "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD" as Cid;
const keyring = new Keyring(Buffer.alloc(32, 7), NAMESPACE);
const minted = keyring.mintPkp(ACCOUNT);
const PKP = minted.address as unknown as PkpId;
const UNKNOWN = Wallet.createRandom().address as PkpId;

const decision = (overrides: Partial<Decision> = {}): Decision => ({
  allowed: true,
  reason: "None",
  actionByName: true,
  accountId: ACCOUNT,
  derivationPath: minted.path,
  blockNumber: 1n,
  blockTimestamp: 1n,
  deniedOps: 0n,
  ...overrides,
});

/** Scripted answers of the contract; run.test.ts uses the real contract. */
class ScriptedChain {
  asked: (PkpId | undefined)[] = [];
  constructor(private readonly answer: (pkp: PkpId | undefined) => Decision | KeywrightError) {}
  explain(_key: KeyId | AccountId, _action: string, pkp: PkpId | undefined): Promise<Decision> {
    this.asked.push(pkp);
    const answer = this.answer(pkp);
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  }
}
const known = (pkp: PkpId | undefined): Decision =>
  pkp === undefined || pkp === PKP
    ? decision()
    : decision({ allowed: false, reason: "UnknownPkp", derivationPath: undefined });
const run: Authorization = { keyId: `0x${"b2".repeat(32)}` as KeyId, cid: CID, decision: decision() };
function opsOver(
  chain: ScriptedChain,
  options: { privateKeysAllowed?: boolean; pkpId?: PkpId; ahead?: DecidedAhead } = {},
): OpHandler {
  const parts = {
    chain: chain as unknown as Chain,
    keyring,
    privateKeysAllowed: options.privateKeysAllowed ?? true,
    limits: RUN_LIMITS,
  };
  const { pkpId, ahead } = options;
  return createOps(parts, { ...run, ...defined({ ahead }) }, pkpId);
}
const ops = opsOver(new ScriptedChain(known));
const answer = (name: string, args: object, handler = ops): Promise<OpAnswer> =>
  handler({ name, args: JSON.stringify(args) });
async function value(name: string, args: object, handler = ops): Promise<string> {
  const given = await answer(name, args, handler);
  if (!given.ok) throw new Error(`${given.code}: ${given.message}`);
  return JSON.parse(given.value) as string;
}
async function refusal(name: string, args: object, handler = ops): Promise<string> {
  const given = await answer(name, args, handler);
  return given.ok ? "allowed" : given.code;
}

describe("the PKPs a run has used", () => {
  it("are reported once an op may use them, and not when they are refused", async () => {
    const used: PkpId[] = [];
    const wildcard = new ScriptedChain((pkp) => (pkp === UNKNOWN ? known(pkp) : decision({ actionByName: false })));
    const parts = { chain: wildcard as unknown as Chain, keyring, privateKeysAllowed: true, limits: RUN_LIMITS };
    const handler = createOps(parts, run, undefined, (pkp) => used.push(pkp));
    expect(await refusal("signMessage", { pkpId: UNKNOWN, message: "" }, handler)).to.equal("permission_denied");
    expect(await refusal("getPrivateKey", { pkpId: PKP }, handler)).to.equal("permission_denied");
    expect(used).to.deep.equal([]);
    await value("signMessage", { pkpId: PKP, message: "" }, handler);
    await value("Encrypt", { pkpId: PKP, message: "m" }, handler);
    expect(new Set(used)).to.deep.equal(new Set([PKP]));
  });
});

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
    const EIP712Domain = [{ name: "name", type: "string" }];
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

  it("signTransaction names the invalid field: another sender, no chain, a blob, an unknown field, a fraction", async () => {
    const fee = { ...common, type: 2, maxFeePerGas: 1, maxPriorityFeePerGas: 1 };
    expect(await refusal("signTransaction", { pkpId: PKP, transaction: { ...fee, from: PKP } })).to.equal("allowed");
    const { chainId: _chainId, ...chainless } = fee;
    for (const transaction of [
      { ...fee, from: UNKNOWN },
      chainless,
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

  it("signSchnorr signs with the key itself, or with the taproot output key with or without a script tree", async () => {
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

  it("take any arguments: each gives a signature of its format or a named refusal that an action can catch", async () => {
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
    expect([...ends], "the arguments reach the signatures, too").to.include.members([
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

describe("encryption ops", () => {
  it("round-trip any text, including the empty one, and never give the same ciphertext twice", async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme" }), async (message) => {
        const [first, second] = [
          await value("Encrypt", { pkpId: PKP, message }),
          await value("Encrypt", { pkpId: PKP, message }),
        ];
        expect(first).to.match(/^kw1\.[A-Za-z0-9_-]{38,}$/);
        expect(second).to.not.equal(first);
        expect(await value("Decrypt", { pkpId: PKP, ciphertext: first })).to.equal(message);
      }),
      { seed: SEED, numRuns: count(50, 1_000), examples: [[""], ["héllo 😀 \u0000"]] },
    );
  });

  it("refuse a ciphertext with any character changed, cut, or lengthened", async () => {
    const ciphertext = await value("Encrypt", { pkpId: PKP, message: "a secret" });
    for (let at = 0; at < ciphertext.length; at++) {
      const changed = ciphertext.slice(0, at) + (ciphertext[at] === "A" ? "B" : "A") + ciphertext.slice(at + 1);
      expect(await refusal("Decrypt", { pkpId: PKP, ciphertext: changed }), `character ${at}`).to.equal(
        "decryption_failed",
      );
      expect(await refusal("Decrypt", { pkpId: PKP, ciphertext: ciphertext.slice(0, at) })).to.equal(
        "decryption_failed",
      );
    }
    expect(await refusal("Decrypt", { pkpId: PKP, ciphertext: `${ciphertext}A` })).to.equal("decryption_failed");
  });

  it("separate accounts and PKPs", async () => {
    const second = keyring.mintPkp(ACCOUNT);
    const chain = new ScriptedChain((pkp) => decision({ derivationPath: pkp === PKP ? minted.path : second.path }));
    const foreign = new ScriptedChain(() => decision({ accountId: `0x${"a2".repeat(32)}` as AccountId }));
    const ciphertext = await value("Encrypt", { pkpId: PKP, message: "a secret" });
    expect(await refusal("Decrypt", { pkpId: second.address, ciphertext }, opsOver(chain))).to.equal(
      "decryption_failed",
    );
    await refusal("Decrypt", { pkpId: PKP, ciphertext }, opsOver(foreign)).then(
      (code) => expect(code).to.not.equal("allowed"),
      (error: unknown) => expect(error).to.be.instanceOf(KeywrightError),
    );
  });
});

describe("private keys and action identities", () => {
  it("getPrivateKey returns the PKP's key and registers it with the tripwire", async () => {
    const given = await answer("getPrivateKey", { pkpId: PKP });
    if (!given.ok) throw new Error(given.message);
    const key = JSON.parse(given.value) as string;
    expect(computeAddress(key)).to.equal(PKP);
    expect(given.exposes).to.deep.equal([key]);
  });

  it("getPrivateKey is refused when the deployment disables it, and for an action listed only by the wildcard", async () => {
    expect(
      await refusal("getPrivateKey", { pkpId: PKP }, opsOver(new ScriptedChain(known), { privateKeysAllowed: false })),
    ).to.equal("permission_denied");
    const byWildcard = new ScriptedChain(() => decision({ actionByName: false }));
    expect(await refusal("getPrivateKey", { pkpId: PKP }, opsOver(byWildcard))).to.equal("permission_denied");
    expect(await refusal("signMessage", { pkpId: PKP, message: "" }, opsOver(byWildcard))).to.equal("allowed");
  });

  it("an action reads its own private key and any action's public key, each bound to the CID", async () => {
    const own = await value("getActionPrivateKey", {});
    expect(await value("getActionWalletAddress", { ipfsId: CID })).to.equal(computeAddress(own));
    expect(await value("getActionPublicKey", { ipfsId: CID })).to.equal(SigningKey.computePublicKey(own));
    expect(await value("getActionWalletAddress", { ipfsId: OTHER_CID })).to.not.equal(computeAddress(own));
    expect(await refusal("getActionPrivateKey", { ipfsId: OTHER_CID })).to.equal("invalid_arguments");
    expect(await refusal("getActionPublicKey", { ipfsId: "nonsense" })).to.equal("invalid_arguments");
  });
});

describe("the permission of an op", () => {
  it("is asked once for each PKP and holds until the run ends", async () => {
    const chain = new ScriptedChain(known);
    const handler = opsOver(chain);
    await Promise.all([1, 2, 3].map(() => value("signMessage", { pkpId: PKP, message: "" }, handler)));
    await value("Encrypt", { pkpId: PKP.toLowerCase(), message: "" }, handler);
    expect(chain.asked).to.deep.equal([PKP]);
  });

  it("is not asked again for the PKP the run was authorised with, nor for an op without a PKP", async () => {
    const chain = new ScriptedChain(known);
    const handler = opsOver(chain, { pkpId: PKP });
    await value("signMessage", { pkpId: PKP, message: "" }, handler);
    await value("getActionWalletAddress", { ipfsId: CID }, handler);
    expect(chain.asked).to.deep.equal([]);
  });

  it("may have come with the run's permission: a fresh answer is used, an old one is asked for again", async () => {
    const askedOf = async (ahead: Partial<DecidedAhead>): Promise<[string, number]> => {
      const chain = new ScriptedChain(known);
      const decided = { pkpId: PKP, decision: decision(), askedAt: performance.now(), ...ahead };
      const handler = opsOver(chain, { ahead: decided });
      const first = await refusal("signMessage", { pkpId: PKP, message: "" }, handler);
      expect(await refusal("signMessage", { pkpId: PKP, message: "" }, handler)).to.equal(first);
      return [first, chain.asked.length];
    };
    expect(await askedOf({})).to.deep.equal(["allowed", 0]);
    expect(await askedOf({ askedAt: performance.now() - 1_500 })).to.deep.equal(["allowed", 1]);
    expect(await askedOf({ pkpId: UNKNOWN })).to.deep.equal(["allowed", 1]);
    const denied = decision({ allowed: false, reason: "PkpNotPermitted" });
    expect(await askedOf({ decision: denied })).to.deep.equal(["permission_denied", 0]);
    const elsewhere = decision({ accountId: `0x${"a2".repeat(32)}` as AccountId });
    expect((await askedOf({ decision: elsewhere }).catch((error: Error) => [error.message]))[0]).to.not.equal(
      "allowed",
    );
  });

  it("is denied for a PKP the contract denies, or whose path or address is another one's", async () => {
    expect(await refusal("signMessage", { pkpId: UNKNOWN, message: "" })).to.equal("permission_denied");
    const lying = (overrides: Partial<Decision>): OpHandler => opsOver(new ScriptedChain(() => decision(overrides)));
    const usage = keyring.mintUsageKey(ACCOUNT, () => undefined).path;
    const elsewhere = keyring.mintPkp(ACCOUNT).path;
    const foreign = keyring.mintPkp(`0x${"c3".repeat(32)}` as AccountId).path;
    for (const derivationPath of [undefined, `0x${"00".repeat(32)}` as DerivationPath, usage, elsewhere, foreign]) {
      expect(await refusal("signMessage", { pkpId: PKP, message: "" }, lying({ derivationPath }))).to.equal(
        "permission_denied",
      );
    }
  });

  it("limits the bytes to hash at a time: exactly the limit, and not one byte more", async () => {
    const ofBytes = (bytes: number, make: (filler: string) => object): string => {
      const empty = Buffer.byteLength(JSON.stringify(make("")));
      return JSON.stringify(make("x".repeat(bytes - empty)));
    };
    const typed = (filler: string): object => ({
      pkpId: PKP,
      domain: {},
      types: { M: [{ name: "text", type: "string" }] },
      message: { text: filler },
    });
    const codeOf = async (name: string, args: string): Promise<string> => {
      const given = await ops({ name, args });
      return given.ok ? "allowed" : given.code;
    };
    const message = (bytes: number): string => ofBytes(bytes, (filler) => ({ pkpId: PKP, message: filler }));
    expect(await codeOf("signMessage", message(RUN_LIMITS.signBytes))).to.equal("allowed");
    expect(await codeOf("signMessage", message(RUN_LIMITS.signBytes + 1))).to.equal("limit_exceeded");
    expect(await codeOf("signTypedData", ofBytes(RUN_LIMITS.typedDataBytes, typed))).to.equal("allowed");
    expect(await codeOf("signTypedData", ofBytes(RUN_LIMITS.typedDataBytes + 1, typed))).to.equal("limit_exceeded");
    expect(await codeOf("Encrypt", message(RUN_LIMITS.signBytes + 1))).to.equal("allowed");
  });

  it("is an error of the service, not of the action, when the chain cannot be read; the next op asks again", async () => {
    let up = false;
    const chain = new ScriptedChain((pkp) => (up ? known(pkp) : new KeywrightError("chain_unavailable", "down")));
    const handler = opsOver(chain);
    const failed = await answer("signMessage", { pkpId: PKP, message: "" }, handler).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(KeywrightError);
    up = true;
    expect(await refusal("signMessage", { pkpId: PKP, message: "" }, handler)).to.equal("allowed");
  });

  it("never throws any other error and never signs on random input", async () => {
    const names = fc.constantFrom(
      "signMessage",
      "signTypedData",
      "signTransaction",
      "signDigest",
      "signEd25519",
      "signSchnorr",
      "signP256",
      "signEd25519AsAction",
      "signSchnorrAsAction",
      "signP256AsAction",
      "getPublicKey",
      "Encrypt",
      "Decrypt",
      "getPrivateKey",
      "getActionPublicKey",
      "constructor",
      "__proto__",
    );
    await fc.assert(
      fc.asyncProperty(names, fc.oneof(fc.json(), fc.string()), async (name, args) => {
        const given = await ops({ name, args });
        expect(given.ok).to.equal(false);
      }),
      { seed: SEED, numRuns: count(200, 10_000) },
    );
  });
});
