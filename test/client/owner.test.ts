/** A ChainSecured owner's writes on a real chain, sent by a wallet. Minted ids are tested end to end in test/e2e. */
import { expect } from "chai";
import { type HDNodeWallet, type TransactionRequest, type TransactionResponse } from "ethers";
import { ClientError, type MintedUsageKey } from "../../client";
import { wordsOf } from "../../dashboard/components/failures";
import { PathKind, actionHashOf, packedAccountId, type Address, type Cid } from "../../protocol/ids";
import type { TestChain } from "../support/chain";
import { CID, HASH, OTHER_CID, codeOf, minted, mintedKey, ownerBed, permissions } from "../support/owners";

describe("a ChainSecured owner's writes with a wallet", () => {
  const bed = ownerBed();
  const { ownerOf, freshOwner } = bed;
  let chain: TestChain;
  before(() => void (chain = bed.chain()));

  it("creates the wallet's own account", async () => {
    const { wallet, owner } = await freshOwner();
    expect(owner.accountId).to.equal(packedAccountId(wallet.address as Address));
    expect(await owner.account()).to.deep.equal({
      id: owner.accountId,
      name: "Acme",
      description: "Treasury",
      managed: false,
      frozen: false,
      owner: wallet.address,
      group_count: 0,
      wallet_count: 0,
      action_count: 0,
      usage_api_key_count: 0,
    });
  });

  it("registers PKPs, creates groups, adds members by CID, address and number, and removes them", async () => {
    const { owner } = await freshOwner();
    const first = minted(owner, PathKind.pkp);
    const second = minted(owner, PathKind.pkp);
    expect(await owner.registerPkp(first, { name: "hot", description: "wallet" })).to.include({
      success: true,
      wallet_address: first.wallet_address,
    });
    await owner.registerPkp(second);

    const made = await owner.addGroup({
      group_name: "g",
      group_description: "",
      pkp_ids_permitted: [first.wallet_address.toLowerCase()],
    });
    expect(made)
      .to.include({ group_id: "1", success: true })
      .and.to.have.keys("group_id", "success", "transaction_hash", "block_number");
    await owner.addActionToGroup({ group_id: 1, action_ipfs_cid: CID });
    await owner.addAction({ action_ipfs_cid: CID, name: "sign", description: "" });
    await owner.addPkpToGroup({ group_id: "0x1", pkp_id: 2 });
    expect((await owner.listGroups()).items).to.deep.equal([
      { id: "1", name: "g", description: "", pkp_count: 2, action_count: 1 },
    ]);
    expect(
      (await owner.listWalletsInGroup({ group_id: 1 })).items.map((item) => [item.id, item.wallet_address, item.name]),
    ).to.deep.equal([
      ["1", first.wallet_address, "hot"],
      ["2", second.wallet_address, ""],
    ]);
    expect((await owner.listActions({ group_id: 1 })).items).to.deep.equal([
      { id: HASH, hashed_cid: HASH, name: "sign", description: "" },
    ]);

    await owner.changeGroupActions({ id: 1, add: [OTHER_CID], remove: [CID] });
    await owner.changeGroupPkps({ id: 1, add: [], remove: ["1", second.wallet_address] });
    expect((await owner.listGroups()).items[0]).to.include({ pkp_count: 0, action_count: 1 });
    await owner.removeActionFromGroup({ group_id: 1, hashed_cid: actionHashOf(OTHER_CID as Cid) });
    await owner.deleteAction({ hashed_cid: HASH });
    expect((await owner.listActions()).items.map((item) => item.id)).to.deep.equal([actionHashOf(OTHER_CID as Cid)]);
    await owner.removeGroup({ group_id: 1 });
    expect(await owner.listGroups()).to.deep.equal({ items: [], total: 0 });
  });

  it("changes names and descriptions", async () => {
    const { owner } = await freshOwner();
    const pkp = minted(owner, PathKind.pkp);
    await owner.registerPkp(pkp);
    await owner.addGroup({ group_name: "old", group_description: "", cid_hashes_permitted: [HASH] });
    await owner.updateAccount({ name: "New", description: "n" });
    await owner.updatePkp({ pkp_id: 1, name: "cold", description: "c" });
    await owner.updateGroup({ group_id: 1, name: "new", description: "n" });
    await owner.updateActionMetadata({ hashed_cid: HASH, name: "act", description: "a" });
    expect(await owner.account()).to.include({ name: "New", description: "n" });
    expect((await owner.listWallets()).items[0]).to.include({ name: "cold", description: "c" });
    expect((await owner.listGroups()).items[0]).to.include({ name: "new", description: "n", action_count: 1 });
    expect((await owner.listActions()).items[0]).to.include({ name: "act", description: "a" });
    await owner.updateGroup({
      group_id: 1,
      name: "new",
      description: "n",
      cid_hashes_permitted: [],
      pkp_ids_permitted: [1],
    });
    expect((await owner.listGroups()).items[0]).to.include({ pkp_count: 1, action_count: 0 });
  });

  it("replaces one list of a group and leaves the other", async () => {
    const { owner } = await freshOwner();
    const pkp = minted(owner, PathKind.pkp);
    await owner.registerPkp(pkp);
    await owner.addGroup({ group_name: "g", group_description: "", cid_hashes_permitted: [HASH] });
    const actionsOfGroup = async () => (await owner.listActions({ group_id: 1 })).items.map(({ id }) => id);
    const pkpsOfGroup = async () =>
      (await owner.listWalletsInGroup({ group_id: 1 })).items.map(({ wallet_address }) => wallet_address);

    await owner.updateGroup({ group_id: 1, name: "g", description: "", pkp_ids_permitted: [pkp.wallet_address] });
    expect([await actionsOfGroup(), await pkpsOfGroup()]).to.deep.equal([[HASH], [pkp.wallet_address]]);
    const other = actionHashOf(OTHER_CID as Cid);
    await owner.updateGroup({ group_id: 1, name: "g", description: "", cid_hashes_permitted: [other] });
    expect([await actionsOfGroup(), await pkpsOfGroup()]).to.deep.equal([[other], [pkp.wallet_address]]);
    await owner.updateGroup({ group_id: 1, name: "g", description: "", pkp_ids_permitted: [] });
    expect([await actionsOfGroup(), await pkpsOfGroup()]).to.deep.equal([[other], []]);
  });

  it("attaches a usage key in one transaction, registration first, and may repeat it", async () => {
    const { owner, wallet } = await freshOwner();
    await owner.addGroup({ group_name: "g", group_description: "", cid_hashes_permitted: [HASH] });
    const key = mintedKey(owner);
    const question = { usage_api_key: key.api_key_hash, hashed_cid: HASH };
    expect(await owner.mayRun(question)).to.equal(false);
    const sent = await owner.attachUsageKey(key, permissions([1], { balance: 500, expiration: "4102444800" }));
    const names = (await chain.provider.getTransactionReceipt(sent.transaction_hash))?.logs.map(
      (log) => chain.contract.interface.parseLog(log)?.name,
    );
    expect(names).to.deep.equal(["WalletDerivationRegistered", "UsageApiKeySet", "UsageApiKeyScopesSet"]);
    expect(await owner.mayRun(question)).to.equal(true);

    const again = await owner.attachUsageKey(
      JSON.parse(JSON.stringify(key)) as MintedUsageKey,
      permissions([1], { balance: 500, expiration: "4102444800" }),
    );
    expect((await chain.provider.getTransactionReceipt(again.transaction_hash))?.logs).to.have.length(0);
    expect(await chain.provider.getTransactionCount(wallet.address)).to.equal(4);
  });

  it("changes a key's permissions and keeps its expiration and cap; renames it; revokes it", async () => {
    const { owner } = await freshOwner();
    await owner.addGroup({ group_name: "g", group_description: "" });
    const key = mintedKey(owner);
    await owner.attachUsageKey(key, permissions([1], { balance: 500, expiration: 4102444800 }));
    await owner.updateUsageApiKey({
      usage_api_key: key.api_key_hash,
      ...permissions([0], { can_create_pkps: true }),
    });
    expect((await owner.listApiKeys()).items).to.deep.equal([
      {
        id: key.api_key_hash,
        api_key_hash: key.api_key_hash,
        expiration: "4102444800",
        balance: "500",
        ...permissions(["0"], { can_create_pkps: true }),
      },
    ]);
    await owner.updateUsageApiKeyMetadata({ usage_api_key: key.api_key_hash, name: "renamed", description: "" });
    expect((await owner.listApiKeys()).items[0]).to.include({ name: "renamed" });
    await owner.removeUsageApiKey({ usage_api_key: key.api_key_hash });
    expect((await owner.listApiKeys()).total).to.equal(0);
    expect(await codeOf(owner.updateUsageApiKey({ usage_api_key: key.api_key_hash, ...permissions([0]) }))).to.equal(
      "unknown_usage_key",
    );
  });

  it("sends several calls at once, or none of them", async () => {
    const { owner, wallet } = await freshOwner();
    const write = owner.prepare.batch([
      await owner.prepare.addGroup({ group_name: "a", group_description: "" }),
      await owner.prepare.updateAccount({ name: "x", description: "" }),
      await owner.prepare.addGroup({ group_name: "b", group_description: "" }),
    ]);
    const { results } = await owner.send(write);
    expect(results).to.deep.equal([{ group_id: "1" }, {}, { group_id: "2" }]);
    expect((await owner.listGroups({ page_size: 1, page_number: 1 })).items[0]).to.include({ id: "2", name: "b" });

    const sent = await chain.provider.getTransactionCount(wallet.address);
    const broken = owner.prepare.batch([
      await owner.prepare.removeGroup({ group_id: 1 }),
      await owner.prepare.removeGroup({ group_id: 9 }),
    ]);
    expect(await codeOf(owner.send(broken))).to.equal("unknown_group");
    expect((await owner.listGroups()).total).to.equal(2);
    expect(await chain.provider.getTransactionCount(wallet.address)).to.equal(sent);
    expect(() => owner.prepare.batch([])).to.throw(ClientError, "at least one");
  });

  it("transfers ownership, and is refused from then on", async () => {
    const { owner } = await freshOwner();
    const successor = await chain.wallet();
    await owner.transferOwnership({ new_owner_address: successor.address });
    expect(await codeOf(owner.addGroup({ group_name: "g", group_description: "" }))).to.equal("not_authorized");
    const next = await ownerOf(successor, { accountId: owner.accountId });
    expect(await next.addGroup({ group_name: "g", group_description: "" })).to.include({ group_id: "1" });
    expect(await next.account()).to.include({ owner: successor.address, id: owner.accountId });
  });

  it("survives a speed-up in the wallet, and reports a cancelled transaction", async () => {
    const { owner, wallet } = await freshOwner();
    await chain.provider.send("evm_setAutomine", [false]);
    try {
      const pending = owner.addGroup({ group_name: "faster", group_description: "" });
      const replaced = await replaceWhenPending(wallet, (first) => ({ to: first.to, data: first.data }));
      expect(await pending).to.include({ group_id: "1", transaction_hash: replaced });
      const cancelled = owner.addGroup({ group_name: "never", group_description: "" });
      const refused = cancelled.catch((error: unknown) => error as ClientError);
      const [error] = await Promise.all([refused, replaceWhenPending(wallet, () => ({ to: wallet.address }))]);
      expect(error).to.be.instanceOf(ClientError).with.property("code", "wallet_declined");
      expect(wordsOf(error)).to.match(/was cancelled in the wallet. Transaction: 0x[0-9a-f]{64}$/);
    } finally {
      await chain.provider.send("evm_setAutomine", [true]);
    }
  });

  /** Waits for the wallet's pending transaction, sends another with its nonce and higher fees, and mines. */
  async function replaceWhenPending(
    wallet: HDNodeWallet,
    other: (first: TransactionResponse) => TransactionRequest,
  ): Promise<string> {
    const nonce = await chain.provider.getTransactionCount(wallet.address);
    for (;;) {
      const block = (await chain.provider.send("eth_getBlockByNumber", ["pending", true])) as {
        transactions: { hash: string; from: string }[];
      };
      const found = block.transactions.find(({ from }) => from === wallet.address.toLowerCase());
      if (found === undefined) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        continue;
      }
      const first = await chain.provider.getTransaction(found.hash);
      if (first === null) continue;
      // The waiting side must have seen the first one before it can detect the replacement.
      await new Promise((resolve) => setTimeout(resolve, 300));
      const fees = {
        maxFeePerGas: (first.maxFeePerGas ?? 0n) * 2n,
        maxPriorityFeePerGas: (first.maxPriorityFeePerGas ?? 0n) * 2n,
      };
      const { hash } = await wallet.sendTransaction({ ...other(first), nonce, ...fees, gasLimit: 500_000 });
      await chain.provider.send("evm_mine", []);
      return hash;
    }
  }
});
