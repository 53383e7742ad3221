/** From API mode to ChainSecured: what stays, what ends at once, and that it is final. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { Wallet, type HDNodeWallet, type JsonRpcProvider } from "ethers";
import { convertAccount, createClient, type ChainSecuredClient, type Client } from "../../client";
import { connect, fundedWallet } from "../support/chain";
import {
  NO_RIGHTS,
  SIGN,
  expectSigned,
  makeAccount,
  makeGroup,
  makeUsageKey,
  refused,
  type TestGroup,
  type TestAccount,
  type TestKey,
} from "../support/journey";
import { signedConversion } from "../support/typedData";
import { useStack } from "../support/stack";

const PERMANENT = ["listGroups", "listWallets", "listActions"] as const;

describe("conversion to ChainSecured", () => {
  const stack = useStack();
  let provider: JsonRpcProvider;
  let account: TestAccount;
  let fixture: TestGroup;
  let bot: TestKey;
  let wallet: HDNodeWallet;
  let owner: ChainSecuredClient;
  let before_: Awaited<ReturnType<typeof everything>>;

  /** What a live key can read of its account. */
  async function everything(client: Client) {
    const lists = await Promise.all(PERMANENT.map((list) => client[list]()));
    const keys = (await client.listApiKeys()).items.map(({ spent_cents: _spent, ...key }) => key);
    return { account: await client.account(), lists, keys };
  }

  before(async () => {
    const { baseUrl, rpcUrl } = stack();
    provider = connect(rpcUrl);
    account = await makeAccount(baseUrl);
    fixture = await makeGroup(account.client);
    await account.client.addAction({ action_ipfs_cid: fixture.cid, name: "sign", description: "signs" });
    bot = await makeUsageKey(account.client, baseUrl, { execute_in_groups: [fixture.group], balance: 1000 });
    wallet = await fundedWallet(provider);
  });
  after(() => provider.destroy());

  it("is refused without the new owner's own signature", async () => {
    const { baseUrl } = stack();
    const stranger = Wallet.createRandom();
    const { typed_data_domain } = await account.client.getNodeChainConfig();
    const forged = await signedConversion(typed_data_domain, wallet.address, stranger);
    const convert = (consent: { typed_data: unknown; signature: string }, new_admin_wallet_address: string) =>
      account.client.convertToChainSecuredAccount({ ...consent, new_admin_wallet_address });
    expect(await refused(convert(forged, wallet.address))).to.equal("400 signature_mismatch");
    const honest = await signedConversion(typed_data_domain, wallet.address, wallet);
    expect(await refused(convert(honest, stranger.address))).to.match(/^400 /);
    expect(
      await refused(
        createClient({ baseUrl, apiKey: bot.key }).convertToChainSecuredAccount({
          ...honest,
          new_admin_wallet_address: wallet.address,
        }),
      ),
    ).to.match(/^403 /);
    expect(await account.client.account()).to.include({ managed: true });
  });

  it("happens in one call, with progress", async () => {
    before_ = await everything(bot.client);
    const balance = (await account.client.balance()).balance_cents;
    const steps: string[] = [];
    const converted = await convertAccount({
      baseUrl: stack().baseUrl,
      apiKey: account.apiKey,
      signer: wallet,
      onProgress: ({ step }) => void steps.push(step),
      idempotencyKey: "conversion",
    });
    owner = converted.owner;
    expect(steps).to.deep.equal(["signed", "converted"]);
    expect(converted.answer).to.include({
      success: true,
      wallet_address: wallet.address,
      api_key_hash: account.accountId,
    });
    expect(owner.accountId).to.equal(account.accountId);
    const { balance_cents } = await owner.balance();
    expect(balance_cents).to.be.within(balance - 1, balance);
  });

  it("keeps id, groups, PKPs, actions and usage keys", async () => {
    const after_ = await everything(bot.client);
    expect(after_).to.deep.equal({
      ...before_,
      account: { ...before_.account, managed: false, owner: wallet.address },
    });
    expect(await owner.account()).to.deep.equal(after_.account);
    await expectSigned(bot.client, fixture.pkp);
  });

  it("revokes the account key at once, everywhere", async () => {
    const { client } = account;
    const refusals = [
      client.addGroup({ group_name: "g", group_description: "" }),
      client.createWallet({}),
      client.addUsageApiKey(NO_RIGHTS),
      client.removeUsageApiKey({ usage_api_key: bot.keyId }),
      client.transferOwnership({ new_owner_address: account.wallet }),
      client.runAction({ code: SIGN, js_params: {} }),
      client.listGroups(),
      client.account(),
      client.balance(),
      client.createPaymentIntent({ amount_cents: 500 }),
    ];
    for (const outcome of await Promise.all(refusals.map(refused)))
      expect(outcome).to.equal("403 account_chain_secured");
    expect(await client.accountExists()).to.equal(false);
  });

  it("cannot be repeated by any caller for any owner; repeating it for the same wallet has no effect", async () => {
    const { baseUrl } = stack();
    const thief = await fundedWallet(provider);
    expect(await refused(convertAccount({ baseUrl, apiKey: account.apiKey, signer: thief }))).to.equal(
      "403 account_chain_secured",
    );
    const again = await convertAccount({ baseUrl, apiKey: account.apiKey, signer: wallet });
    expect(again.answer).to.equal(undefined);
    // A program that began again signs anew, in another second, under the idempotency key that it has kept.
    await sleep(1_000);
    const repeated = { baseUrl, apiKey: account.apiKey, idempotencyKey: "conversion" };
    expect((await convertAccount({ ...repeated, signer: wallet })).answer).to.equal(undefined);
    expect(await refused(convertAccount({ ...repeated, signer: thief }))).to.equal("409 idempotency_conflict");
    expect((await owner.account()).owner).to.equal(wallet.address);
  });

  it("leaves a usage key its runs, lists and billing, and no writes", async () => {
    const { baseUrl } = stack();
    const { client } = bot;
    await expectSigned(client, fixture.pkp);
    expect((await client.listGroups()).total).to.equal(1);
    expect((await client.balance()).balance_cents).to.be.greaterThan(0);
    expect(await client.createPaymentIntent({ amount_cents: 500 })).to.have.property("client_secret");
    expect(await refused(client.addGroup({ group_name: "g", group_description: "" }))).to.equal(
      "403 account_chain_secured",
    );
    expect(await refused(client.createWallet({}))).to.equal("403 account_chain_secured");
    expect(await createClient({ baseUrl, apiKey: bot.key }).accountExists()).to.equal(true);
  });

  it("gives the wallet full control: it changes the key, and the next run applies the change", async () => {
    await owner.updateUsageApiKey({ ...NO_RIGHTS, usage_api_key: bot.key });
    expect(await refused(bot.client.runAction({ code: SIGN, js_params: {} }))).to.equal("403 no_execute_scope");
    expect((await owner.listApiKeys()).items[0]).to.include({ balance: "1000" });
    await owner.updateUsageApiKey({ ...NO_RIGHTS, usage_api_key: bot.keyId, execute_in_groups: [fixture.group] });
    await expectSigned(bot.client, fixture.pkp);
    const second = await owner.createPkp({ name: "second" });
    await owner.addPkpToGroup({ group_id: fixture.group, pkp_id: second.pkp_id });
    await expectSigned(bot.client, second.wallet_address);
  });
});
