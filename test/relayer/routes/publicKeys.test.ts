/** `GET /public_keys`: the keys of a PKP on every curve, for any live key of its account, signed by the executor. */
import { expect } from "chai";
import { computeAddress } from "ethers";
import { arePublicKeysAttested } from "../../../client/verify";
import { CURVES } from "../../../protocol/curves";
import type { PublicKeysAnswer } from "../../../protocol/publicKeys";
import { NO_PERMISSIONS, codeOf, members, newApiAccount, type Api, type ApiAccount } from "../../support/http";
import { useStack } from "../../support/stack";

const KEYS = `async function main({ pkpId, curves }) {
  return Promise.all(curves.map((curve) => Actions.getPublicKey({ pkpId, curve })));
}`;

describe("the public keys of a PKP", () => {
  const stack = useStack();
  let account: ApiAccount;
  let pkp: string;
  let config: Record<string, unknown>;
  before(async () => {
    account = await newApiAccount(stack().baseUrl);
    pkp = String((await account.api.must("/create_wallet", {}))["pkp_id"]);
    const info = (await (await fetch(`${stack().baseUrl}/info`)).json()) as { config: Record<string, unknown> };
    config = info.config;
  });
  async function keysOf(api: Api, reference: string): Promise<PublicKeysAnswer> {
    const given = await api.get(`/public_keys?pkp_id=${reference}`);
    expect(given.status, JSON.stringify(given.body)).to.equal(200);
    return given.body as PublicKeysAnswer;
  }

  it("equal those of an action, on every curve, and cost nothing", async () => {
    await account.api.must("/add_group", { group_name: "g", group_description: "", pkp_ids_permitted: [pkp] });
    const cid = (await account.api.post("/get_lit_action_ipfs_id", KEYS)).body;
    await account.api.must("/add_action_to_group", { group_id: 1, action_ipfs_cid: cid });
    const before_ = members(await account.api.get("/billing/balance"))["balance_cents"];
    const answer = await keysOf(account.api, pkp);
    expect(members(await account.api.get("/billing/balance"))["balance_cents"]).to.equal(before_);
    const ran = await account.api.must("/run_action", { code: KEYS, js_params: { pkpId: pkp, curves: CURVES } });
    expect(answer.keys.map(({ curve }) => curve)).to.deep.equal(CURVES);
    expect(answer.keys.map(({ public_key }) => public_key)).to.deep.equal(ran["response"]);
    expect(answer.pkp_id).to.equal(pkp);
    expect(computeAddress(answer.keys[0]?.public_key ?? "")).to.equal(pkp);
    const addresses = Object.assign({}, ...answer.keys.map((key) => key.addresses)) as Record<string, string>;
    expect(Object.keys(addresses)).to.deep.equal(["ethereum", "solana", "bitcoin_p2tr", "bitcoin_testnet_p2tr"]);
    expect(answer.keys.map(({ jwk }) => jwk?.crv)).to.deep.equal(["secp256k1", "Ed25519", undefined, "P-256"]);
  });

  it("can be requested by PKP number, too, by any live key of the account", async () => {
    const { usage_api_key: key } = await account.api.must("/add_usage_api_key", { ...NO_PERMISSIONS });
    const bot = account.api.with(String(key));
    expect(await keysOf(bot, "1")).to.deep.equal(await keysOf(account.api, pkp));
    await account.api.must("/remove_usage_api_key", { usage_api_key: key });
    const revoked = await bot.get(`/public_keys?pkp_id=${pkp}`);
    expect([revoked.status, codeOf(revoked)]).to.deep.equal([401, "unknown_key"]);
  });

  it("are signed, every member of them, by the key in the attested config document", async () => {
    const answer = await keysOf(account.api, pkp);
    expect(answer.attestation.public_key).to.equal(config["statement_key"]);
    for (const expected of [pkp, pkp.toLowerCase()])
      expect(arePublicKeysAttested(answer, config, expected)).to.equal(true);
    const [first, second] = answer.keys;
    if (!first || !second) throw new Error("no keys");
    const forgeries: PublicKeysAnswer[] = [
      { ...answer, pkp_id: `0x${"11".repeat(20)}` },
      { ...answer, derivation_path: `0x${"11".repeat(32)}` },
      { ...answer, keys: answer.keys.slice(1) },
      { ...answer, keys: [second, first, ...answer.keys.slice(2)] },
      {
        ...answer,
        keys: [
          first,
          { ...second, addresses: { solana: "11111111111111111111111111111111" } },
          ...answer.keys.slice(2),
        ],
      },
      { ...answer, attestation: { ...answer.attestation, signature: `0x${"00".repeat(64)}` } },
    ];
    for (const forged of forgeries) expect(arePublicKeysAttested(forged, config, forged.pkp_id)).to.equal(false);
    expect(arePublicKeysAttested(answer, { ...config, statement_key: `0x${"11".repeat(32)}` }, pkp)).to.equal(false);
    expect(arePublicKeysAttested(answer, { ...config, key_namespace: `0x${"11".repeat(32)}` }, pkp)).to.equal(false);
    expect(arePublicKeysAttested(answer, {}, pkp)).to.equal(false);
  });

  it("are not those of the PKP asked for when the answer is genuine, and about another one", async () => {
    const second = String((await account.api.must("/create_wallet", {}))["pkp_id"]);
    const answer = await keysOf(account.api, second);
    const attestedFor = [second, pkp].map((one) => arePublicKeysAttested(answer, config, one));
    expect(attestedFor).to.deep.equal([true, false]);
  });

  it("are refused for another account's PKP, an unknown one, or the wildcard", async () => {
    const stranger = await newApiAccount(stack().baseUrl);
    for (const [api, reference, expected] of [
      [stranger.api, pkp, "404 unknown_pkp"],
      [account.api, `0x${"11".repeat(20)}`, "404 unknown_pkp"],
      [account.api, `0x${"00".repeat(20)}`, "404 unknown_pkp"],
      [account.api, "99", "404 unknown_pkp_number"],
      [account.api, "nonsense", "400 invalid_value"],
      [account.api, "0", "400 invalid_value"],
    ] as const) {
      const given = await api.get(`/public_keys?pkp_id=${reference}`);
      expect(`${given.status} ${codeOf(given)}`).to.equal(expected);
    }
    expect((await account.api.get("/public_keys")).status).to.be.within(400, 422);
  });
});
