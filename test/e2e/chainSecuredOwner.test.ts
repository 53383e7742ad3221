/**
 * A ChainSecured owner's main flow, with a wallet and with a Safe. A minted key has no rights until its transactions
 * land; relayer and executor see the owner's writes at once.
 */
import { expect } from "chai";
import { Wallet, type HDNodeWallet, type JsonRpcProvider } from "ethers";
import {
  createChainSecuredClient,
  createClient,
  type ChainSecuredClient,
  type Progress,
  type MintedUsageKey,
} from "../../client";
import { packedAccountId, type Address } from "../../protocol/ids";
import { connect, fundedWallet } from "../support/chain";
import { NO_RIGHTS, SIGN, expectSigned, makeAccount, refusal, refused } from "../support/journey";
import { deploySafe, type TestSafe } from "../support/safe";
import { useStack } from "../support/stack";

describe("a ChainSecured owner", () => {
  const stack = useStack();
  let provider: JsonRpcProvider;
  before(() => {
    provider = connect(stack().rpcUrl);
  });
  after(() => provider.destroy());

  const ownerOf = (signer: Wallet | HDNodeWallet, more = {}) =>
    createChainSecuredClient({ baseUrl: stack().baseUrl, signer, ...more });
  const keyClient = (apiKey: string) => createClient({ baseUrl: stack().baseUrl, apiKey });
  async function freshOwner(): Promise<{ wallet: HDNodeWallet; owner: ChainSecuredClient }> {
    const wallet = await fundedWallet(provider);
    const owner = await ownerOf(wallet);
    await owner.createAccount({ account_name: "Self", account_description: "" });
    return { wallet, owner };
  }

  it("completes the main flow with a wallet", async () => {
    const { owner, wallet } = await freshOwner();
    expect(owner.accountId).to.equal(packedAccountId(wallet.address as Address));
    const pkp = await owner.createPkp({ name: "treasury" });
    const cid = await owner.getActionIpfsId(SIGN);
    const { group_id } = await owner.addGroup({
      group_name: "g",
      group_description: "",
      pkp_ids_permitted: [pkp.pkp_id],
    });
    await owner.addActionToGroup({ group_id, action_ipfs_cid: cid });
    const key = await owner.createUsageKey({ ...NO_RIGHTS, execute_in_groups: [group_id] });
    await expectSigned(keyClient(key.usage_api_key), pkp.wallet_address);

    await owner.removeUsageApiKey({ usage_api_key: key.usage_api_key });
    expect(await refused(keyClient(key.usage_api_key).runAction({ code: SIGN, js_params: {} }))).to.equal(
      "401 unknown_key",
    );
  });

  it("gives a minted PKP no rights before its transaction, and all of them with it", async () => {
    const { owner } = await freshOwner();
    const minted = await owner.mintPkp();
    expect((await owner.listWallets()).total).to.equal(0);
    const { group_id } = await owner.addGroup({ group_name: "g", group_description: "" });
    expect((await refusal(owner.addPkpToGroup({ group_id, pkp_id: minted.wallet_address }))).code).to.equal(
      "unknown_pkp",
    );
    await owner.addGroup({
      group_name: "any",
      group_description: "",
      cid_hashes_permitted: [`0x${"0".repeat(64)}`],
      pkp_ids_permitted: [`0x${"0".repeat(40)}`],
    });
    const bot = keyClient((await owner.createUsageKey({ ...NO_RIGHTS, execute_in_groups: [0] })).usage_api_key);
    expect(await refused(bot.runAction({ code: SIGN, js_params: {}, pkp_id: minted.wallet_address }))).to.match(
      /^(403|404) /,
    );

    await owner.registerPkp(minted, { name: "late" });
    await expectSigned(bot, minted.wallet_address);
  });

  it("gives a minted key no rights before its transaction, and exactly the given ones with it", async () => {
    const { owner } = await freshOwner();
    const { group_id } = await owner.addGroup({
      group_name: "g",
      group_description: "",
      cid_hashes_permitted: [`0x${"0".repeat(64)}`],
    });
    const { usage_api_key, minted } = await owner.mintUsageKey();
    const bot = keyClient(usage_api_key);
    expect(await bot.accountExists()).to.equal(false);
    expect(await refused(bot.runAction({ code: SIGN, js_params: {} }))).to.equal("401 unknown_key");
    expect(await refused(bot.listGroups())).to.equal("401 unknown_key");

    await owner.attachUsageKey(minted, { ...NO_RIGHTS, execute_in_groups: [group_id] });
    expect(await bot.accountExists()).to.equal(true);
    const run = await bot.runAction({ code: "async function main() { return 1; }" });
    expect(run.response).to.equal(1);
    expect(await refused(bot.addGroup({ group_name: "g", group_description: "" }))).to.equal(
      "403 account_chain_secured",
    );
  });

  it("resumes after a lost transaction, from stored data that holds no secret", async () => {
    const { owner, wallet } = await freshOwner();
    const { group_id } = await owner.addGroup({
      group_name: "g",
      group_description: "",
      cid_hashes_permitted: [`0x${"0".repeat(64)}`],
    });
    const broken = await ownerOf(wallet, { send: () => Promise.reject(new Error("the wallet went away")) });
    const seen: Progress<MintedUsageKey>[] = [];
    const permissions = { ...NO_RIGHTS, execute_in_groups: [group_id] };
    const error = await refusal(
      broken.createUsageKey(permissions, { onProgress: (progress) => void seen.push(progress) }),
    );
    expect(error.code).to.equal("transaction_failed");
    const [first] = seen;
    if (first?.step !== "minted" || first.usage_api_key === undefined) throw new Error("the mint was not told");
    const stored = JSON.stringify(first.minted);
    expect(stored).not.to.include(first.usage_api_key);
    expect(error.facts["minted"]).to.deep.equal(first.minted);
    expect(await keyClient(first.usage_api_key).accountExists()).to.equal(false);

    await owner.attachUsageKey(JSON.parse(stored) as MintedUsageKey, permissions);
    expect(
      (await keyClient(first.usage_api_key).runAction({ code: "async function main() { return 1; }" })).response,
    ).to.equal(1);
  });

  it("reports the contract's refusal of the second half together with the completed first half", async () => {
    const { owner } = await freshOwner();
    const error = await refusal(owner.createUsageKey({ ...NO_RIGHTS, execute_in_groups: [7] }));
    expect(error.code).to.equal("unknown_group");
    expect(error.facts).to.have.property("minted").that.has.keys("api_key_hash", "wallet_address", "derivation_path");
    const { group_id } = await owner.addGroup({ group_name: "g", group_description: "" });
    const sent = await owner.attachUsageKey(error.facts["minted"] as MintedUsageKey, {
      ...NO_RIGHTS,
      execute_in_groups: [group_id],
    });
    expect(sent.success).to.equal(true);
  });

  it("cannot use a mint of another account", async () => {
    const { owner } = await freshOwner();
    const { owner: other } = await freshOwner();
    const minted = await other.mintPkp();
    expect((await refusal(owner.registerPkp(minted))).code).to.equal("foreign_derivation_path");
    const { minted: key } = await other.mintUsageKey();
    expect((await refusal(owner.attachUsageKey(key, NO_RIGHTS))).code).to.equal("foreign_derivation_path");
  });

  it("writes directly, and relayer and executor see it at once", async () => {
    const { owner } = await freshOwner();
    const bot = keyClient((await owner.createUsageKey({ ...NO_RIGHTS, execute_in_groups: [0] })).usage_api_key);
    const code = "async function main() { return 1; }";
    const cid = await owner.getActionIpfsId(code);
    for (let round = 0; round < 3; round += 1) {
      const { group_id } = await owner.addGroup({ group_name: `round ${round}`, group_description: "" });
      expect((await bot.listGroups()).items.map(({ id }) => id)).to.deep.equal([group_id]);
      await owner.addActionToGroup({ group_id, action_ipfs_cid: cid });
      expect((await bot.runAction({ code })).response).to.equal(1);
      await owner.removeGroup({ group_id });
      expect(await refused(bot.runAction({ code }))).to.equal("403 no_execute_scope");
      expect((await bot.listGroups()).total).to.equal(0);
    }
  });

  it("sees and pays its credit with a signed header, and no other account's", async () => {
    const { owner } = await freshOwner();
    const { owner: other } = await freshOwner();
    expect((await owner.balance()).balance_cents).to.equal(2000);
    expect(await owner.createPaymentIntent({ amount_cents: 500 })).to.have.property("client_secret");
    expect((await owner.history()).items.map(({ kind }) => kind)).to.deep.equal(["signup_credit"]);
    const curious = await ownerOf(await fundedWallet(provider), { accountId: other.accountId });
    expect(await refused(curious.balance())).to.match(/^40[34] /);
  });

  it("rejects a wallet that signs for an account it does not own: the mint is useless", async () => {
    const { owner } = await freshOwner();
    const stranger = await ownerOf(await fundedWallet(provider), { accountId: owner.accountId });
    const minted = await stranger.mintPkp();
    expect((await refusal(stranger.registerPkp(minted))).code).to.equal("not_authorized");
    expect((await owner.listWallets()).total).to.equal(0);
  });

  describe("that is a Safe", () => {
    let safe: TestSafe;
    let owner: ChainSecuredClient;

    before(async () => {
      const seats = [Wallet.createRandom(), Wallet.createRandom()].map((seat) => seat.connect(provider));
      safe = await deploySafe(await fundedWallet(provider), seats, 2);
      owner = await ownerOf(Wallet.createRandom(provider), { owner: safe.address });
    });

    it("learns that a delegate cannot send before anything is minted", async () => {
      const steps: string[] = [];
      const error = await refusal(owner.createUsageKey(NO_RIGHTS, { onProgress: ({ step }) => void steps.push(step) }));
      expect([error.code, steps]).to.deep.equal(["not_the_owner", []]);
    });

    it("completes the main flow through files for its signers", async () => {
      const { prepare } = owner;
      const pkp = await owner.mintPkp();
      const { usage_api_key, minted } = await owner.mintUsageKey();
      const cid = await owner.getActionIpfsId(SIGN);
      const bot = keyClient(usage_api_key);
      const file = owner.safeFile(
        [
          await prepare.createAccount({ account_name: "DAO", account_description: "" }),
          await prepare.registerPkp(pkp, { name: "treasury" }),
          await prepare.addGroup({ group_name: "g", group_description: "", pkp_ids_permitted: [pkp.wallet_address] }),
          await prepare.addActionToGroup({ group_id: 1, action_ipfs_cid: cid }),
          await prepare.attachUsageKey(minted, { ...NO_RIGHTS, execute_in_groups: [1] }),
        ],
        { name: "Set up" },
      );
      expect(await bot.accountExists()).to.equal(false);
      await safe.execute((JSON.parse(JSON.stringify(file)) as typeof file).transactions);
      await expectSigned(bot, pkp.wallet_address);

      await safe.execute(
        owner.safeFile([await prepare.removeUsageApiKey({ usage_api_key: minted.api_key_hash })], { name: "Revoke" })
          .transactions,
      );
      expect(await refused(bot.runAction({ code: SIGN, js_params: {} }))).to.equal("401 unknown_key");
    });

    it("takes over an API-mode account, whose usage keys stay valid", async () => {
      const { baseUrl } = stack();
      const account = await makeAccount(baseUrl);
      const { usage_api_key } = await account.client.addUsageApiKey(NO_RIGHTS);
      await account.client.transferOwnership({ new_owner_address: safe.address });
      expect(await refused(account.client.listGroups())).to.equal("403 account_chain_secured");
      const next = await ownerOf(Wallet.createRandom(provider), {
        owner: safe.address,
        accountId: account.accountId,
        send: (call: Parameters<TestSafe["execute"]>[0][number]) => safe.execute([call]),
      });
      expect(await next.account()).to.include({ id: account.accountId, owner: safe.address, managed: false });
      expect((await keyClient(usage_api_key).balance()).balance_cents).to.be.greaterThan(0);
      const pkp = await next.createPkp({ name: "of the Safe" });
      expect((await keyClient(usage_api_key).listWallets()).items[0]).to.include({
        wallet_address: pkp.wallet_address,
      });
      await next.removeUsageApiKey({ usage_api_key });
      expect(await refused(keyClient(usage_api_key).listGroups())).to.equal("401 unknown_key");
    });
  });
});
