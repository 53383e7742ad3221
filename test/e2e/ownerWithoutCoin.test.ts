/** An owner whose wallet never holds coin performs every operation through the SDK. */
import { expect } from "chai";
import { Wallet, type JsonRpcProvider } from "ethers";
import { createChainSecuredClient, createClient, type ChainSecuredClient } from "../../client";
import { cidOfCode } from "../../client/cid";
import { ownerWithoutCoin } from "../../client/examples/wallet";
import { connect, fundedWallet } from "../support/chain";
import { NO_RIGHTS, SIGN, expectSigned, refused } from "../support/journey";
import { useStack } from "../support/stack";

describe("an owner without coin", function () {
  this.timeout(90_000);
  const stack = useStack();
  let provider: JsonRpcProvider;
  before(() => (provider = connect(stack().rpcUrl)));
  after(() => provider.destroy());

  const isUntouched = async (address: string): Promise<void> => {
    expect([await provider.getBalance(address), await provider.getTransactionCount(address)]).to.deep.equal([0n, 0]);
  };

  it("creates an account, a PKP, a group, a usage key, runs, revokes and transfers ownership", async () => {
    const { baseUrl } = stack();
    const wallet = Wallet.createRandom();
    const { owner, pkp } = await ownerWithoutCoin(baseUrl, provider, wallet.privateKey);
    const cid = await cidOfCode(SIGN);
    const { group_id } = await owner.addGroup({
      group_name: "payouts",
      group_description: "",
      pkp_ids_permitted: [pkp.pkp_id],
    });
    await owner.addActionToGroup({ group_id, action_ipfs_cid: cid });
    const { usage_api_key, api_key_hash } = await owner.createUsageKey({ ...NO_RIGHTS, execute_in_groups: [group_id] });
    const bot = createClient({ baseUrl, apiKey: usage_api_key });
    await expectSigned(bot, pkp.wallet_address);
    await owner.removeUsageApiKey({ usage_api_key: api_key_hash });
    expect(await refused(bot.runAction({ code: SIGN, js_params: {} }))).to.equal("401 unknown_key");
    expect((await owner.balance()).balance_cents).to.be.lessThan(2_000);

    const next = Wallet.createRandom();
    await owner.transferOwnership({ new_owner_address: next.address });
    const heir = await createChainSecuredClient({
      baseUrl,
      signer: next.connect(provider),
      accountId: owner.accountId,
      gas: "service",
    });
    await heir.updateGroup({ group_id, name: "inherited", description: "" });
    expect(await refused(owner.removeGroup({ group_id }))).to.match(/not_authorized$/);
    for (const { address } of [wallet, next]) await isUntouched(address);
  });

  it("pays from the wallet when asked to and able to, and reports how each write was sent", async () => {
    const { baseUrl } = stack();
    const made = async (signer: Wallet | ReturnType<Wallet["connect"]>): Promise<[ChainSecuredClient, string[]]> => {
      const ways: string[] = [];
      const onSent = (_hash: string, paidBy: string): void => void ways.push(paidBy);
      return [await createChainSecuredClient({ baseUrl, signer, gas: "wallet-or-service", onSent }), ways];
    };
    const [rich, richWays] = await made(new Wallet((await fundedWallet(provider)).privateKey, provider));
    await rich.createAccount({ account_name: "rich", account_description: "" });
    const poorWallet = new Wallet(Wallet.createRandom().privateKey, provider);
    const [poor, poorWays] = await made(poorWallet);
    await poor.createAccount({ account_name: "poor", account_description: "" });
    expect([richWays, poorWays]).to.deep.equal([["wallet"], ["service"]]);
    await isUntouched(poorWallet.address);
  });
});
