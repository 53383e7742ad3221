/** `POST /relay`: owners whose wallets hold no coin, and every misuse by another party. */
import { expect } from "chai";
import { Wallet, type Interface, solidityPackedKeccak256, type HDNodeWallet, type JsonRpcProvider } from "ethers";
import { AccountManager__factory } from "../../typechain-types";
import { connect } from "../support/chain";
import { relayNonce, signedForward, type ForwardOverrides } from "../support/forwards";
import { Api, codeOf, members, type HttpAnswer } from "../support/http";
import { useStack } from "../support/stack";

const ABI: Interface = AccountManager__factory.createInterface();

describe("calls signed by an owner and sent by the service", function () {
  this.timeout(60_000);
  const stack = useStack();
  let provider: JsonRpcProvider;
  let api: Api;
  let config: Record<string, unknown>;
  before(async () => {
    provider = connect(stack().rpcUrl);
    api = new Api(stack().baseUrl);
    config = members(await api.get("/get_node_chain_config"));
  });
  after(() => provider.destroy());

  const idOf = (wallet: { address: string }): string => solidityPackedKeccak256(["address"], [wallet.address]);
  const nonceOf = (wallet: { address: string }): Promise<string> => relayNonce(api, wallet);
  const request = (
    wallet: HDNodeWallet | Wallet,
    name: string,
    args: unknown[],
    overrides: ForwardOverrides = {},
  ): Promise<Record<string, string>> => signedForward(api, wallet, name, args, overrides);
  const relay = async (
    wallet: HDNodeWallet | Wallet,
    name: string,
    args: unknown[],
    overrides: ForwardOverrides = {},
  ): Promise<HttpAnswer> => api.post("/relay", await request(wallet, name, args, overrides));
  const must = async (
    wallet: HDNodeWallet | Wallet,
    name: string,
    args: unknown[],
  ): Promise<Record<string, unknown>> => {
    const answer = await relay(wallet, name, args);
    expect(answer.status, answer.text).to.equal(200);
    return members(answer);
  };
  async function ownerWithAccount(): Promise<HDNodeWallet> {
    const wallet = Wallet.createRandom();
    await must(wallet, "newChainSecuredAccount", ["mine", ""]);
    return wallet;
  }
  const accountOf = async (id: string): Promise<string> => {
    const contract = AccountManager__factory.connect(String(config["contract_address"]), provider);
    return String((await contract.getAccount(id)).name);
  };

  it("an empty wallet creates an account, gets the sign-up credit, and pays for a group from it", async () => {
    const owner = await ownerWithAccount();
    expect(await accountOf(idOf(owner))).to.equal("mine");
    const group = await must(owner, "addGroup", [idOf(owner), "payouts", "", [], []]);
    expect(group["group_id"]).to.equal("1");
    expect(await provider.getBalance(owner.address)).to.equal(0n);
    expect(await provider.getTransactionCount(owner.address)).to.equal(0);
  });

  it("the same request again, also concurrently, is one write with one answer", async () => {
    const owner = await ownerWithAccount();
    const one = await request(owner, "addGroup", [idOf(owner), "once", "", [], []]);
    const answers = await Promise.all([api.post("/relay", one), api.post("/relay", one), api.post("/relay", one)]);
    expect(answers.map(({ status, text }) => [status, text])).to.deep.equal(answers.map(() => [200, answers[0]?.text]));
    expect((await api.post("/relay", one)).text).to.equal(answers[0]?.text);
    expect(await nonceOf(owner)).to.equal("2");
  });

  it("concurrent owners share transactions, and each gets its own answer", async () => {
    const owners = await Promise.all(Array.from({ length: 12 }, ownerWithAccount));
    const groups = await Promise.all(
      owners.map((owner) => must(owner, "addGroup", [idOf(owner), "at once", "", [], []])),
    );
    expect(groups.map((group) => group["group_id"])).to.deep.equal(owners.map(() => "1"));
    expect(new Set(groups.map((group) => group["transaction_hash"])).size).to.be.lessThan(owners.length);
  });

  it("several calls of one account are sent as one", async () => {
    const owner = Wallet.createRandom();
    const inner = [
      ABI.encodeFunctionData("newChainSecuredAccount", ["all at once", ""]),
      ABI.encodeFunctionData("addGroup", [idOf(owner), "g", "", [], []]),
    ];
    expect((await must(owner, "multicall", [inner]))["group_id"]).to.equal("1");
    expect(await accountOf(idOf(owner))).to.equal("all at once");
  });

  describe("is refused, with nothing spent,", () => {
    let owner: HDNodeWallet;
    before(async () => (owner = await ownerWithAccount()));

    const cases: Record<string, [number, string, () => Promise<HttpAnswer>]> = {
      "with a nonce that was used": [
        409,
        "forward_nonce_used",
        () => relay(owner, "updateAccountMetadata", [idOf(owner), "x", ""], { nonce: "0" }),
      ],
      "with a nonce of the future": [
        409,
        "forward_nonce_used",
        () => relay(owner, "updateAccountMetadata", [idOf(owner), "x", ""], { nonce: "99" }),
      ],
      "after its deadline": [
        400,
        "request_expired",
        () => relay(owner, "updateAccountMetadata", [idOf(owner), "x", ""], { deadline: "1700000000" }),
      ],
      "for another owner's account": [
        403,
        "not_authorized",
        () => relay(Wallet.createRandom(), "updateAccountMetadata", [idOf(owner), "x", ""]),
      ],
      "for an account that does not exist": [
        404,
        "unknown_account",
        () => relay(owner, "updateAccountMetadata", [idOf(Wallet.createRandom()), "x", ""]),
      ],
      "with a number that does not fit": [
        400,
        "invalid_value",
        async () =>
          api.post("/relay", {
            ...(await request(owner, "updateAccountMetadata", [idOf(owner), "x", ""])),
            nonce: "9".repeat(78),
          }),
      ],
      "by a stranger's signature": [
        400,
        "signature_mismatch",
        async () =>
          api.post("/relay", {
            ...(await request(Wallet.createRandom(), "updateAccountMetadata", [idOf(owner), "x", ""])),
            from: owner.address,
          }),
      ],
      "with too little gas": [
        400,
        "forward_gas_too_low",
        () => relay(owner, "updateAccountMetadata", [idOf(owner), "longer name", ""], { gas: "5000" }),
      ],
      "for an account that exists": [
        409,
        "account_id_taken",
        () => relay(owner, "newChainSecuredAccount", ["again", ""]),
      ],
      "for a group that does not exist": [404, "unknown_group", () => relay(owner, "removeGroup", [idOf(owner), 77])],
      "with coin": [
        400,
        "invalid_value",
        () => relay(owner, "updateAccountMetadata", [idOf(owner), "x", ""], { value: "1" }),
      ],
      "to another contract": [
        400,
        "invalid_value",
        () =>
          relay(owner, "updateAccountMetadata", [idOf(owner), "x", ""], { to: String(config["forwarder_address"]) }),
      ],
      "for an administrator's call": [403, "not_authorized", () => relay(owner, "addApiPayer", [owner.address])],
      "without a field": [
        422,
        "invalid_body",
        async () => api.post("/relay", { ...(await request(owner, "removeGroup", [idOf(owner), 1])), gas: undefined }),
      ],
    };
    for (const [what, [status, code, act]] of Object.entries(cases)) {
      it(what, async () => {
        const before = await nonceOf(owner);
        const answer = await act();
        expect([answer.status, codeOf(answer)], answer.text).to.deep.equal([status, code]);
        expect([await nonceOf(owner), await accountOf(idOf(owner))]).to.deep.equal([before, "mine"]);
      });
    }
  });

  it("transfers ownership, after which the old owner's signature is refused", async () => {
    const [owner, next] = [await ownerWithAccount(), Wallet.createRandom()];
    await must(owner, "transferOwnership", [idOf(owner), next.address]);
    const refused = await relay(owner, "addGroup", [idOf(owner), "late", "", [], []]);
    expect([refused.status, codeOf(refused)]).to.deep.equal([403, "not_authorized"]);
    expect((await must(next, "addGroup", [idOf(owner), "mine now", "", [], []]))["group_id"]).to.equal("1");
  });
});
