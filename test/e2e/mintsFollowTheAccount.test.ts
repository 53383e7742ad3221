/**
 * Mints by signature with the bodies of the original specification (no `api_key_hash`): what they mint belongs to the
 * account that the signing wallet owns.
 */
import { expect } from "chai";
import { TypedDataEncoder, solidityPackedKeccak256, type HDNodeWallet, type JsonRpcProvider } from "ethers";
import { convertAccount, createAccount } from "../../client";
import { buildTypedData, type PrimaryType } from "../../protocol/typedData";
import type { Address } from "../../protocol/ids";
import { AccountManager__factory, type AccountManager } from "../../typechain-types";
import { connect, fundedWallet } from "../support/chain";
import { eventually } from "../support/chainBed";
import { Api, codeOf, members, type HttpAnswer } from "../support/http";
import { SIGN, expectSigned, makeAccount, makeUsageKey, type TestAccount } from "../support/journey";
import { useStack } from "../support/stack";

describe("mints by signature, without naming an account", function () {
  this.timeout(60_000);
  const stack = useStack();
  let provider: JsonRpcProvider;
  before(() => (provider = connect(stack().rpcUrl)));
  after(() => provider.destroy());

  async function mint(
    path: string,
    primaryType: PrimaryType,
    wallet: HDNodeWallet,
    extra: object = {},
  ): Promise<HttpAnswer> {
    const domain = { name: "Keywright ChainSecured", version: "1", chainId: 31_337n } as const;
    const typed_data = buildTypedData(primaryType, domain, wallet.address as Address, Math.floor(Date.now() / 1000));
    const { EIP712Domain: _, ...types } = typed_data.types as Record<string, { name: string; type: string }[]>;
    expect(TypedDataEncoder.getPrimaryType(types)).to.equal(primaryType);
    const signature = await wallet.signTypedData(domain, types, typed_data.message);
    return new Api(stack().baseUrl).post(path, { typed_data, signature, ...extra });
  }

  async function contractAs(wallet: HDNodeWallet): Promise<AccountManager> {
    const { contract_address } = members(await new Api(stack().baseUrl).get("/get_node_chain_config"));
    return AccountManager__factory.connect(String(contract_address), wallet);
  }

  /** Mints a PKP and registers it on chain under `id`, as a client of the specification does. */
  async function mintAndRegister(wallet: HDNodeWallet, id: string, body: object = {}): Promise<string> {
    const minted = members(await mint("/create_wallet_with_signature", "CreateWallet", wallet, body));
    const pkp = String(minted["wallet_address"]);
    await (
      await (
        await contractAs(wallet)
      ).registerWalletDerivation(id, pkp, String(minted["derivation_path"]), "minted", "")
    ).wait();
    return pkp;
  }

  async function canSignWith(account: TestAccount, wallet: HDNodeWallet, body: object = {}): Promise<void> {
    const group = (await account.client.listGroups()).items[0]?.id ?? "";
    const pkp = await mintAndRegister(wallet, account.accountId, body);
    await (await (await contractAs(wallet)).addPkpToGroup(account.accountId, group, pkp)).wait();
    await expectSigned(account.client, pkp);
  }

  async function accountWithBot(): Promise<{ account: TestAccount; bot: TestAccount }> {
    const { baseUrl } = stack();
    const account = await makeAccount(baseUrl);
    const cid = await account.client.getActionIpfsId(SIGN);
    const { group_id } = await account.client.addGroup({ group_name: "g", group_description: "" });
    await account.client.addActionToGroup({ group_id, action_ipfs_cid: cid });
    const key = await makeUsageKey(account.client, baseUrl, { execute_in_groups: [group_id] });
    return { account, bot: { ...account, client: key.client, apiKey: key.key } };
  }

  it("on a converted account: the PKP registers and signs", async () => {
    const { account, bot } = await accountWithBot();
    const wallet = await fundedWallet(provider);
    await convertAccount({ baseUrl: stack().baseUrl, apiKey: account.apiKey, signer: wallet });
    await canSignWith(bot, wallet);
  });

  it("on a transferred account: by naming it, and unnamed once its new owner has written to it", async () => {
    const { account, bot } = await accountWithBot();
    const wallet = await fundedWallet(provider);
    await account.client.transferOwnership({ new_owner_address: wallet.address });
    const unnamed = members(await mint("/create_wallet_with_signature", "CreateWallet", wallet));
    const own = solidityPackedKeccak256(["address"], [wallet.address]);
    expect(String(unnamed["derivation_path"]).slice(-32)).to.equal(own.slice(-32));
    await canSignWith(bot, wallet, { api_key_hash: account.accountId });
    await eventually("the new owner's write is known", async () => {
      const key = members(await mint("/add_usage_api_key_with_signature", "AddUsageApiKey", wallet));
      return String(key["derivation_path"]).slice(-32) === account.accountId.slice(-32);
    });
  });

  it("a wallet with an account of its own id mints for that one, whatever else it owns", async () => {
    const wallet = await fundedWallet(provider);
    await (await (await contractAs(wallet)).newChainSecuredAccount("mine", "")).wait();
    const { client } = await createAccount(
      { baseUrl: stack().baseUrl },
      { account_name: "gift", account_description: "" },
    );
    await client.transferOwnership({ new_owner_address: wallet.address });
    await mintAndRegister(wallet, solidityPackedKeccak256(["address"], [wallet.address]));
  });

  it("a wallet with several of its own, none of its own id, must name one", async () => {
    const wallet = await fundedWallet(provider);
    const [first, second] = [await makeAccount(stack().baseUrl), await makeAccount(stack().baseUrl)];
    for (const { apiKey } of [first, second])
      await convertAccount({ baseUrl: stack().baseUrl, apiKey, signer: wallet });
    const refused = await mint("/create_wallet_with_signature", "CreateWallet", wallet);
    expect([refused.status, codeOf(refused)]).to.deep.equal([400, "invalid_value"]);
    const named = await mint("/create_wallet_with_signature", "CreateWallet", wallet, {
      api_key_hash: second.accountId,
    });
    expect(String(members(named)["derivation_path"]).slice(-32)).to.equal(second.accountId.slice(-32));
  });
});
