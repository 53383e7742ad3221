import { expect } from "chai";
import { Signature, Wallet, toBeHex } from "ethers";
import { isErrorCode, KeywrightError } from "../../protocol/errors";
import type { Address } from "../../protocol/ids";
import {
  buildTypedData,
  PRIMARY_TYPES,
  verifyTypedData,
  type PrimaryType,
  type TypedData,
  type TypedDataDomain,
} from "../../protocol/typedData";

const NOW = 1_800_000_000;
const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const domain: TypedDataDomain = { name: "Keywright ChainSecured", version: "1", chainId: 31_337n };
const wallet = new Wallet("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d");
const address = wallet.address as Address;

type Mutable = {
  types: Record<string, { name: string; type: string }[]>;
  primaryType: string;
  domain: Record<string, unknown>;
  message: Record<string, unknown>;
} & Record<string, unknown>;

function envelope(primaryType: PrimaryType = "CreateWallet"): Mutable {
  return structuredClone(buildTypedData(primaryType, domain, address, NOW)) as unknown as Mutable;
}

/** Signs the envelope as given, canonical or not. */
function sign(typedData: Mutable): Promise<string> {
  const { EIP712Domain: _, ...types } = typedData.types;
  return wallet.signTypedData(typedData.domain, types, typedData.message);
}

const verify = (typedData: unknown, signature: unknown, primaryType: PrimaryType = "CreateWallet"): Address =>
  verifyTypedData(typedData, signature, { primaryType, domain, nowSeconds: NOW });

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof KeywrightError && isErrorCode(error.code)) return error.code;
    throw error;
  }
  return "accepted";
}

describe("typed data", () => {
  it("of the canonical shape gives the signing wallet, with numbers as decimal strings or as numbers", async () => {
    const canonical = envelope();
    expect(verify(canonical, await sign(canonical))).to.equal(address);
    const numbers = envelope();
    Object.assign(numbers.domain, { chainId: 31_337 });
    Object.assign(numbers.message, { issuedAt: NOW });
    expect(verify(numbers, await sign(numbers))).to.equal(address);
  });

  it("accepts the address in any case", async () => {
    const lower = envelope();
    lower.message.address = address.toLowerCase();
    expect(verify(lower, await sign(envelope()))).to.equal(address);
  });

  for (const signed of PRIMARY_TYPES) {
    for (const endpoint of PRIMARY_TYPES) {
      it(`signed as ${signed} where ${endpoint} is required: ${signed === endpoint ? "ok" : "refused"}`, async () => {
        const typedData = envelope(signed);
        const signature = await sign(typedData);
        expect(refusal(() => verify(typedData, signature, endpoint))).to.equal(
          signed === endpoint ? "accepted" : "typed_data_wrong_primary_type",
        );
      });
    }
  }

  const mutations: [string, (typedData: Mutable) => void, string][] = [
    ["reordered domain fields", (t) => void t.types.EIP712Domain?.reverse(), "typed_data_types_mismatch"],
    ["reordered message fields", (t) => void t.types.CreateWallet?.reverse(), "typed_data_types_mismatch"],
    ["a missing message field", (t) => void t.types.CreateWallet?.pop(), "typed_data_types_mismatch"],
    [
      "an extra message field",
      (t) => void t.types.CreateWallet?.push({ name: "nonce", type: "uint256" }),
      "typed_data_types_mismatch",
    ],
    [
      "another field type",
      (t) =>
        void (t.types.CreateWallet = [
          { name: "address", type: "address" },
          { name: "issuedAt", type: "uint64" },
        ]),
      "typed_data_types_mismatch",
    ],
    ["an extra type", (t) => void (t.types.Other = [{ name: "x", type: "string" }]), "typed_data_types_mismatch"],
    ["no domain type", (t) => void Reflect.deleteProperty(t.types, "EIP712Domain"), "typed_data_types_mismatch"],
    [
      "a member beside name and type",
      (t) => void Object.assign(t.types.CreateWallet?.[0] ?? {}, { indexed: true }),
      "typed_data_malformed",
    ],
    ["an extra member of the envelope", (t) => void (t.extra = 1), "typed_data_malformed"],
    ["an extra member of the domain", (t) => void (t.domain.verifyingContract = address), "typed_data_malformed"],
    ["an extra member of the message", (t) => void (t.message.nonce = "1"), "typed_data_malformed"],
    [
      "a missing member of the message",
      (t) => void Reflect.deleteProperty(t.message, "issuedAt"),
      "typed_data_malformed",
    ],
    [
      "a message that is JSON in a string",
      (t) => void Object.assign(t, { message: JSON.stringify(t.message) }),
      "typed_data_malformed",
    ],
    ["another service's name", (t) => void (t.domain.name = "Other ChainSecured"), "typed_data_wrong_domain"],
    ["another version", (t) => void (t.domain.version = "2"), "typed_data_wrong_domain"],
    ["another chain", (t) => void (t.domain.chainId = "1"), "typed_data_wrong_chain"],
    ["a chain id in hex", (t) => void (t.domain.chainId = "0x7a69"), "typed_data_malformed"],
    ["a chain id with a leading zero", (t) => void (t.domain.chainId = "031337"), "typed_data_malformed"],
    ["301 seconds ago", (t) => void (t.message.issuedAt = String(NOW - 301)), "typed_data_expired"],
    ["301 seconds ahead", (t) => void (t.message.issuedAt = String(NOW + 301)), "typed_data_expired"],
    ["a fraction of a second", (t) => void (t.message.issuedAt = NOW + 0.5), "typed_data_malformed"],
    ["a negative time", (t) => void (t.message.issuedAt = -1), "typed_data_malformed"],
    ["exactly 300 seconds ago", (t) => void (t.message.issuedAt = String(NOW - 300)), "accepted"],
    ["exactly 300 seconds ahead", (t) => void (t.message.issuedAt = String(NOW + 300)), "accepted"],
    ["no address", (t) => void (t.message.address = "0x1234"), "typed_data_malformed"],
    ["another primary type", (t) => void (t.primaryType = "Mint"), "typed_data_wrong_primary_type"],
  ];
  for (const [what, mutate, expected] of mutations) {
    it(`with ${what}: ${expected}`, async () => {
      const typedData = envelope();
      mutate(typedData);
      const signature = await sign(typedData).catch(() => sign(envelope()));
      expect(refusal(() => verify(typedData, signature))).to.equal(expected);
    });
  }

  for (const input of [null, undefined, "text", 42, [], {}, true]) {
    it(`that is ${JSON.stringify(input)} is malformed`, () => {
      expect(refusal(() => verify(input, `0x${"11".repeat(65)}`))).to.equal("typed_data_malformed");
    });
  }

  it("of 4,096 bytes is parsed, of 4,097 refused as too large", async () => {
    const padded = (bytes: number): Mutable => {
      const typedData = envelope();
      typedData.domain.name = "x".repeat(bytes - JSON.stringify(typedData).length + domain.name.length);
      expect(JSON.stringify(typedData)).to.have.length(bytes);
      return typedData;
    };
    const signature = await sign(envelope());
    expect(refusal(() => verify(padded(4_096), signature))).to.equal("typed_data_wrong_domain");
    expect(refusal(() => verify(padded(4_097), signature))).to.equal("typed_data_too_large");
  });
});

describe("the signature over typed data", () => {
  it("of another wallet is refused", async () => {
    const signature = await Wallet.createRandom().signTypedData(
      domain,
      { CreateWallet: envelope().types.CreateWallet ?? [] },
      envelope().message,
    );
    expect(refusal(() => verify(envelope(), signature))).to.equal("signature_mismatch");
  });

  const forms: [string, (signature: Signature) => unknown, string][] = [
    ["in 64 bytes (EIP-2098)", (s) => s.compactSerialized, "signature_malformed"],
    ["with v 2", (s) => s.serialized.slice(0, 130) + "02", "signature_malformed"],
    ["with v 29", (s) => `${s.serialized.slice(0, 130)}1d`, "signature_malformed"],
    ["with the other v", (s) => s.serialized.slice(0, 130) + (s.v === 27 ? "1c" : "1b"), "signature_mismatch"],
    [
      "with high s",
      (s) => s.r + toBeHex(ORDER - BigInt(s.s), 32).slice(2) + (s.v === 27 ? "1c" : "1b"),
      "signature_malformed",
    ],
    ["of zeros", () => `0x${"00".repeat(64)}1b`, "signature_mismatch"],
    ["without 0x", (s) => s.serialized.slice(2), "signature_malformed"],
    ["a byte longer", (s) => `${s.serialized}00`, "signature_malformed"],
    ["that is no hex", (s) => s.serialized.replace(/^0x../, "0xzz"), "signature_malformed"],
    ["that is an object", () => ({}), "signature_malformed"],
    ["that is missing", () => undefined, "signature_malformed"],
    ["in upper case", (s) => `0x${s.serialized.slice(2).toUpperCase()}`, "accepted"],
  ];
  for (const [what, form, expected] of forms) {
    it(`${what}: ${expected}`, async () => {
      const typedData = envelope();
      const signature = Signature.from(await sign(typedData));
      expect(refusal(() => verify(typedData as unknown as TypedData, form(signature)))).to.equal(expected);
    });
  }
});
