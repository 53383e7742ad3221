/**
 * Typed data over HTTP: every single mutation of the envelope against every endpoint that accepts one, and every
 * endpoint's envelope against every other.
 */
import { expect } from "chai";
import { Signature, Wallet, toBeHex } from "ethers";
import { PRIMARY_TYPES, buildTypedData, type PrimaryType } from "../../../protocol/typedData";
import type { Address } from "../../../protocol/ids";
import { Api, codeOf, members, newApiAccount, type ApiAccount, type HttpAnswer } from "../../support/http";
import { useStack } from "../../support/stack";

type Loose = {
  types: Record<string, { name: string; type: string }[]>;
  primaryType: string;
  domain: Record<string, unknown>;
  message: Record<string, unknown>;
} & Record<string, unknown>;

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
/** A new wallet each time: in a shared stack a known one may own accounts of other tests. */
const wallet = new Wallet(Wallet.createRandom().privateKey);
const now = (): number => Math.floor(Date.now() / 1000);

const own = (t: Loose): { name: string; type: string }[] => t.types[t.primaryType] ?? [];
const domainFields = (t: Loose): { name: string; type: string }[] => t.types["EIP712Domain"] ?? [];
type Mutation = readonly [what: string, mutate: (t: Loose) => void, code: string];

const MUTATIONS: readonly Mutation[] = [
  ["reordered domain fields", (t) => void domainFields(t).reverse(), "typed_data_types_mismatch"],
  ["reordered message fields", (t) => void own(t).reverse(), "typed_data_types_mismatch"],
  ["a missing message field in the types", (t) => void own(t).pop(), "typed_data_types_mismatch"],
  [
    "an extra message field in the types",
    (t) => void own(t).push({ name: "nonce", type: "uint256" }),
    "typed_data_types_mismatch",
  ],
  [
    "an extra domain field in the types",
    (t) => void domainFields(t).push({ name: "salt", type: "bytes32" }),
    "typed_data_types_mismatch",
  ],
  ["an extra type", (t) => void (t.types["Other"] = [{ name: "x", type: "string" }]), "typed_data_types_mismatch"],
  [
    "__proto__ among the types",
    (t) => void Object.defineProperty(t.types, "__proto__", { value: [], enumerable: true }),
    "typed_data_types_mismatch",
  ],
  ["no domain type", (t) => void Reflect.deleteProperty(t.types, "EIP712Domain"), "typed_data_types_mismatch"],
  ["an extra member of the envelope", (t) => void (t["extra"] = 1), "typed_data_malformed"],
  [
    "an extra member of the domain",
    (t) => void (t.domain["verifyingContract"] = wallet.address),
    "typed_data_malformed",
  ],
  ["an extra member of the message", (t) => void (t.message["nonce"] = "1"), "typed_data_malformed"],
  ["no domain", (t) => void Reflect.deleteProperty(t, "domain"), "typed_data_malformed"],
  ["no primaryType", (t) => void Reflect.deleteProperty(t, "primaryType"), "typed_data_malformed"],
  ["no issuedAt", (t) => void Reflect.deleteProperty(t.message, "issuedAt"), "typed_data_malformed"],
  [
    "a message that is JSON in a string",
    (t) => void Object.assign(t, { message: JSON.stringify(t.message) }),
    "typed_data_malformed",
  ],
  ["another service's name", (t) => void (t.domain["name"] = "Other ChainSecured"), "typed_data_wrong_domain"],
  ["another version", (t) => void (t.domain["version"] = "2"), "typed_data_wrong_domain"],
  ["another chain", (t) => void (t.domain["chainId"] = "1"), "typed_data_wrong_chain"],
  ["a chain id in hex", (t) => void (t.domain["chainId"] = "0x7a69"), "typed_data_malformed"],
  ["310 seconds ago", (t) => void (t.message["issuedAt"] = String(now() - 310)), "typed_data_expired"],
  ["310 seconds ahead", (t) => void (t.message["issuedAt"] = String(now() + 310)), "typed_data_expired"],
  ["in milliseconds", (t) => void (t.message["issuedAt"] = String(Date.now())), "typed_data_expired"],
  ["a fraction of a second", (t) => void (t.message["issuedAt"] = now() + 0.5), "typed_data_malformed"],
  ["a negative time", (t) => void (t.message["issuedAt"] = -1), "typed_data_malformed"],
  ["half an address", (t) => void (t.message["address"] = "0x1234"), "typed_data_malformed"],
  [
    "another wallet's address",
    (t) => void (t.message["address"] = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
    "signature_mismatch",
  ],
  ["an unknown primary type", (t) => void (t.primaryType = "Mint"), "typed_data_wrong_primary_type"],
];

type Form = readonly [what: string, form: (s: Signature) => unknown, code: string];
const FORMS: readonly Form[] = [
  ["64 bytes", (s) => s.compactSerialized, "signature_malformed"],
  ["v 2", (s) => s.serialized.slice(0, 130) + "02", "signature_malformed"],
  ["the other v", (s) => s.serialized.slice(0, 130) + (s.v === 27 ? "1c" : "1b"), "signature_mismatch"],
  [
    "high s",
    (s) => s.r + toBeHex(ORDER - BigInt(s.s), 32).slice(2) + (s.v === 27 ? "1c" : "1b"),
    "signature_malformed",
  ],
  ["zeros", () => `0x${"00".repeat(64)}1b`, "signature_mismatch"],
  ["a byte longer", (s) => `${s.serialized}00`, "signature_malformed"],
  ["an object", () => ({ r: 1 }), "signature_malformed"],
  ["null", () => null, "signature_malformed"],
];

describe("typed data over HTTP", function () {
  this.timeout(60_000);
  const stack = useStack();
  let account: ApiAccount;
  let domain: { name: string; version: "1"; chainId: bigint };

  /** Each endpoint that accepts an envelope, and the API code of an invalid one. */
  const ENDPOINTS: Record<PrimaryType, (typedData: unknown, signature: unknown) => Promise<HttpAnswer>> = {
    CreateWallet: (typed_data, signature) =>
      new Api(stack().baseUrl).post("/create_wallet_with_signature", { typed_data, signature }),
    AddUsageApiKey: (typed_data, signature) =>
      new Api(stack().baseUrl).post("/add_usage_api_key_with_signature", { typed_data, signature }),
    ConvertAccount: (typed_data, signature) =>
      account.api.post("/convert_to_chain_secured_account", {
        typed_data,
        signature,
        new_admin_wallet_address: wallet.address,
      }),
    BillingAuth: (typed_data, signature) => {
      const header = Buffer.from(JSON.stringify({ typed_data, signature })).toString("base64");
      return new Api(stack().baseUrl).get("/billing/balance", { headers: { "x-wallet-auth": header } });
    },
  };
  const faultOf = (answer: HttpAnswer): unknown =>
    codeOf(answer) === "invalid_wallet_auth" ? members(answer)["reason"] : codeOf(answer);

  const envelope = (primaryType: PrimaryType): Loose =>
    structuredClone(buildTypedData(primaryType, domain, wallet.address as Address, now())) as unknown as Loose;
  const sign = (t: Loose): Promise<string> => {
    const { EIP712Domain: _, ...types } = t.types;
    return wallet.signTypedData(t.domain, types, t.message);
  };

  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    const config = members(await account.api.get("/get_node_chain_config"));
    const { name, chainId } = config["typed_data_domain"] as { name: string; chainId: string };
    domain = { name, version: "1", chainId: BigInt(chainId) };
  });

  for (const primaryType of PRIMARY_TYPES) {
    describe(`signed as ${primaryType}`, () => {
      it("is refused by every other endpoint", async () => {
        const typedData = envelope(primaryType);
        const signature = await sign(typedData);
        for (const other of PRIMARY_TYPES.filter((one) => one !== primaryType)) {
          const answer = await ENDPOINTS[other](typedData, signature);
          expect([answer.status, faultOf(answer)], other).to.deep.equal([
            other === "BillingAuth" ? 401 : 400,
            "typed_data_wrong_primary_type",
          ]);
        }
      });

      it("is refused with any single mutation, by the mutation's own code", async () => {
        for (const [what, mutate, code] of MUTATIONS) {
          const typedData = envelope(primaryType);
          mutate(typedData);
          const signature = await sign(typedData).catch(() => sign(envelope(primaryType)));
          const answer = await ENDPOINTS[primaryType](
            typedData,
            code === "signature_mismatch" ? await sign(envelope(primaryType)) : signature,
          );
          expect([answer.status, faultOf(answer)], what).to.deep.equal([
            primaryType === "BillingAuth" ? 401 : 400,
            code,
          ]);
        }
      });

      it("is refused with any other form of signature", async () => {
        const typedData = envelope(primaryType);
        const signature = Signature.from(await sign(typedData));
        for (const [what, form, code] of FORMS)
          expect(faultOf(await ENDPOINTS[primaryType](typedData, form(signature))), what).to.equal(code);
      });

      it("is accepted with v 0 or 1", async () => {
        if (primaryType === "ConvertAccount") return; // converts: the next test's account
        const typedData = envelope(primaryType);
        const { serialized, yParity } = Signature.from(await sign(typedData));
        const answer = await ENDPOINTS[primaryType](typedData, `${serialized.slice(0, 130)}0${yParity}`);
        expect(String(faultOf(answer)), answer.text).to.not.include("signature");
      });

      it("is refused when it is not an envelope", async () => {
        const signature = await sign(envelope(primaryType));
        for (const input of [null, "text", 42, [], {}, true, JSON.stringify(envelope(primaryType))]) {
          expect(faultOf(await ENDPOINTS[primaryType](input, signature)), JSON.stringify(input)).to.equal(
            "typed_data_malformed",
          );
        }
      });

      it("is parsed up to 4,096 bytes and no further", async () => {
        const padded = (bytes: number): Loose => {
          const typedData = envelope(primaryType);
          typedData.domain["name"] =
            "é".repeat(10) + "x".repeat(bytes - Buffer.byteLength(JSON.stringify(typedData)) + domain.name.length - 20);
          expect(Buffer.byteLength(JSON.stringify(typedData))).to.equal(bytes);
          return typedData;
        };
        const signature = await sign(envelope(primaryType));
        expect(faultOf(await ENDPOINTS[primaryType](padded(4_096), signature))).to.equal("typed_data_wrong_domain");
        const answer = await ENDPOINTS[primaryType](padded(4_097), signature);
        expect([answer.status, faultOf(answer)]).to.deep.equal([
          primaryType === "BillingAuth" ? 401 : 413,
          "typed_data_too_large",
        ]);
      });
    });
  }

  it("after all that the account is unchanged", async () => {
    expect(members(await account.api.get("/account"))).to.include({ managed: true, owner: account.wallet });
  });

  it("of the canonical shape mints anew every time, for the signer's account or the named one", async () => {
    const typedData = envelope("CreateWallet");
    const signature = await sign(typedData);
    const first = await ENDPOINTS.CreateWallet(typedData, signature);
    const second = await ENDPOINTS.CreateWallet(typedData, signature);
    expect([first.status, second.status]).to.deep.equal([200, 200]);
    expect(members(first)["wallet_address"]).to.not.equal(members(second)["wallet_address"]);
    const named = await new Api(stack().baseUrl).must("/create_wallet_with_signature", {
      typed_data: typedData,
      signature,
      api_key_hash: account.id,
    });
    expect(String(named["derivation_path"]).slice(34)).to.equal(account.id.slice(34));
    expect(String(members(first)["derivation_path"]).slice(34)).to.not.equal(account.id.slice(34));
  });

  it("whose signer is not the new owner converts nothing", async () => {
    const typedData = envelope("ConvertAccount");
    const body = {
      typed_data: typedData,
      signature: await sign(typedData),
      new_admin_wallet_address: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
    };
    const answer = await account.api.post("/convert_to_chain_secured_account", body);
    expect([answer.status, codeOf(answer)]).to.deep.equal([400, "signature_mismatch"]);
  });

  it("names the account that a wallet has just received by conversion, at the next request", async () => {
    const owner = Wallet.createRandom();
    const signed = async (primaryType: PrimaryType) => {
      const typedData = buildTypedData(primaryType, domain, owner.address as Address, now()) as unknown as Loose;
      const { EIP712Domain: _, ...types } = typedData.types;
      return {
        typed_data: typedData,
        signature: await owner.signTypedData(typedData.domain, types, typedData.message),
      };
    };
    const converted = await newApiAccount(stack().baseUrl);
    await converted.api.must("/convert_to_chain_secured_account", {
      ...(await signed("ConvertAccount")),
      new_admin_wallet_address: owner.address,
    });
    const header = Buffer.from(JSON.stringify(await signed("BillingAuth"))).toString("base64");
    const answer = await new Api(stack().baseUrl).get("/billing/balance", { headers: { "x-wallet-auth": header } });
    expect([answer.status, answer.headers["x-account"]], answer.text).to.deep.equal([200, converted.id]);
  });

  it("lets a wallet read the billing of the accounts it owns, and of no other", async () => {
    const [mine, second] = [await newApiAccount(stack().baseUrl), await newApiAccount(stack().baseUrl)];
    for (const one of [mine, second]) await one.api.must("/transfer_ownership", { new_owner_address: wallet.address });
    const typedData = envelope("BillingAuth");
    const header = Buffer.from(JSON.stringify({ typed_data: typedData, signature: await sign(typedData) })).toString(
      "base64",
    );
    const ask = (headers: Record<string, string> = {}) =>
      new Api(stack().baseUrl).get("/billing/balance", { headers: { "x-wallet-auth": header, ...headers } });
    const unnamed = await ask();
    expect([unnamed.status, codeOf(unnamed)], "a received account is never the default").to.deep.equal([
      400,
      "account_not_named",
    ]);
    expect(members(unnamed)["accounts"]).to.deep.equal([mine.id, second.id]);
    const picked = await ask({ "x-account": second.id.toUpperCase().replace("0X", "0x") });
    expect([picked.status, picked.headers["x-account"]]).to.deep.equal([200, second.id]);
    const foreign = await ask({ "x-account": account.id });
    expect([foreign.status, codeOf(foreign)]).to.deep.equal([403, "account_not_owned"]);
    expect((await ask({ "x-account": "0x12" })).status).to.equal(400);
    const stranger = await mine.api.get("/billing/balance");
    expect([stranger.status, codeOf(stranger)], "the former account key").to.deep.equal([403, "account_chain_secured"]);
  });
});
