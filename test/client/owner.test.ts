/**
 * A ChainSecured owner's writes on a real chain: sent by a wallet, exported for a Safe, and refused. The service is
 * asked only for the contract's address; minted ids are tested end to end in test/e2e.
 */
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  AbstractSigner,
  Wallet,
  makeError,
  type HDNodeWallet,
  type Signer,
  type TransactionRequest,
  type TransactionResponse,
} from "ethers";
import {
  ClientError,
  createChainSecuredClient,
  type ChainSecuredClient,
  type ChainSecuredOptions,
  type MintedUsageKey,
  type MintedWallet,
  type OwnerWrite,
} from "../../client";
import {
  keyIdOf,
  packedAccountId,
  derivationPath,
  PathKind,
  actionHashOf,
  type Address,
  type ApiKey,
  type Cid,
} from "../../protocol/ids";
import { startTestChain, type TestChain } from "../support/chain";
import { deploySafe, type TestSafe } from "../support/safe";

const CID = "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX";
const HASH = actionHashOf(CID as Cid);
const OTHER_CID = "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD";

async function codeOf(promise: Promise<unknown>): Promise<string> {
  const error: unknown = await promise.then(
    () => "nothing was refused",
    (reason: unknown) => reason,
  );
  return error instanceof ClientError ? error.code : String(error);
}

/** A mint for `client`'s account, as the executor makes it. */
function minted(client: ChainSecuredClient, kind: PathKind): MintedWallet {
  return {
    wallet_address: Wallet.createRandom().address,
    derivation_path: derivationPath(kind, randomBytes(15), client.accountId),
  };
}
function mintedKey(client: ChainSecuredClient): MintedUsageKey {
  return { ...minted(client, PathKind.usageKey), api_key_hash: keyIdOf(randomBytes(32).toString("base64") as ApiKey) };
}
const permissions = (groups: readonly (string | number)[], more = {}) => ({
  name: "bot",
  description: "runs",
  can_create_groups: false,
  can_delete_groups: false,
  can_create_pkps: false,
  manage_ipfs_ids_in_groups: [],
  add_pkp_to_groups: [],
  remove_pkp_from_groups: [],
  execute_in_groups: [...groups],
  ...more,
});

describe("a ChainSecured owner's writes", () => {
  let chain: TestChain;
  let service: Server;
  let baseUrl: string;

  before(async () => {
    chain = await startTestChain();
    const config = {
      contract_address: chain.contractAddress,
      chain_id: 31337,
      chain_name: "test",
      is_evm: true,
      testnet: true,
      token: "ETH",
      key_namespace: await chain.contract.keyNamespace(),
      typed_data_domain: { name: "Keywright ChainSecured", version: "1", chainId: "31337" },
    };
    service = createServer((_request, response) =>
      response.setHeader("content-type", "application/json").end(JSON.stringify(config)),
    );
    await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
    baseUrl = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  });
  after(async () => {
    service.closeAllConnections();
    service.close();
    await chain.stop();
  });

  const ownerOf = (signer: Signer, more: Partial<ChainSecuredOptions> = {}) =>
    createChainSecuredClient({ baseUrl, signer, ...more });

  async function freshOwner(): Promise<{ wallet: HDNodeWallet; owner: ChainSecuredClient }> {
    const wallet = await chain.wallet();
    const owner = await ownerOf(wallet);
    await owner.createAccount({ account_name: "Acme", account_description: "Treasury" });
    return { wallet, owner };
  }

  describe("with a bare wallet", () => {
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
        (await owner.listWalletsInGroup({ group_id: 1 })).items.map((item) => [
          item.id,
          item.wallet_address,
          item.name,
        ]),
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
  });

  describe("with a 2-of-3 Safe", () => {
    let safe: TestSafe;
    let delegate: Wallet;

    before(async () => {
      const seats = [Wallet.createRandom(), Wallet.createRandom(), Wallet.createRandom()].map((seat) =>
        seat.connect(chain.provider),
      );
      safe = await deploySafe(chain.deployer, seats, 2);
      delegate = new Wallet(Wallet.createRandom().privateKey, chain.provider);
    });

    it("creates an account and everything in it from files that the Transaction Builder loads", async () => {
      const owner = await ownerOf(delegate, { owner: safe.address });
      const pkp = minted(owner, PathKind.pkp);
      const key = mintedKey(owner);
      const { prepare } = owner;
      const file = owner.safeFile(
        [
          await prepare.createAccount({ account_name: "DAO", account_description: "" }),
          await prepare.registerPkp(pkp, { name: "treasury" }),
          await prepare.addGroup({
            group_name: "g",
            group_description: "",
            cid_hashes_permitted: [HASH],
            pkp_ids_permitted: [pkp.wallet_address],
          }),
          await prepare.attachUsageKey(key, permissions([1])),
        ],
        { name: "Set up", description: "account, PKP, group, key" },
      );
      expect(file).to.deep.include({
        version: "1.0",
        chainId: "31337",
        meta: { name: "Set up", description: "account, PKP, group, key", createdFromSafeAddress: safe.address },
      });
      expect(file.createdAt).to.be.closeTo(Date.now(), 60_000);
      for (const call of file.transactions) {
        expect(call).to.have.keys("to", "value", "data", "contractMethod", "contractInputsValues");
        expect(call).to.include({
          to: chain.contractAddress,
          value: "0",
          contractMethod: null,
          contractInputsValues: null,
        });
      }

      const loaded = JSON.parse(JSON.stringify(file)) as typeof file;
      await safe.execute(loaded.transactions);
      expect(owner.accountId).to.equal(packedAccountId(safe.address as Address));
      expect(await owner.account()).to.include({
        owner: safe.address,
        managed: false,
        group_count: 1,
        wallet_count: 1,
        usage_api_key_count: 1,
      });
      expect(
        await owner.mayRun({ usage_api_key: key.api_key_hash, hashed_cid: HASH, pkp_id: pkp.wallet_address }),
      ).to.equal(true);
    });

    it("accepts a Safe as its sender, and then every operation works as with a wallet", async () => {
      const owner = await ownerOf(delegate, { owner: safe.address, send: (call) => safe.execute([call]) });
      const { group_id } = await owner.addGroup({ group_name: "second", group_description: "" });
      expect((await owner.listGroups()).items.at(-1)).to.include({ id: group_id, name: "second" });
      await owner.removeGroup({ group_id });
      expect(await codeOf(owner.removeGroup({ group_id }))).to.equal("unknown_group");
    });

    it("performs every operation of a wallet through Safe files", async () => {
      const seats = [Wallet.createRandom(), Wallet.createRandom()].map((seat) => seat.connect(chain.provider));
      const fresh = await deploySafe(chain.deployer, seats, 2);
      const owner = await ownerOf(delegate, { owner: fresh.address });
      const { prepare } = owner;
      const done = new Set<string>();
      const execute = async (writes: Record<string, Promise<OwnerWrite> | OwnerWrite>): Promise<void> => {
        const prepared = await Promise.all(Object.values(writes));
        const calls = await fresh.execute(owner.safeFile(prepared, { name: "all" }).transactions);
        expect(calls.status).to.equal(1);
        Object.keys(writes).forEach((name) => done.add(name));
      };
      const [pkp, key, successor] = [minted(owner, PathKind.pkp), mintedKey(owner), Wallet.createRandom().address];
      const one = { group_id: 1, pkp_id: pkp.wallet_address, action_ipfs_cid: CID, hashed_cid: HASH };
      await execute({
        createAccount: prepare.createAccount({ account_name: "DAO", account_description: "" }),
        freezeAccount: prepare.freezeAccount(),
        unfreezeAccount: prepare.unfreezeAccount(),
        registerPkp: prepare.registerPkp(pkp),
        addGroup: prepare.addGroup({ group_name: "g", group_description: "" }),
        attachUsageKey: prepare.attachUsageKey(key, permissions([1])),
      });
      await execute({
        updateAccount: prepare.updateAccount({ name: "New", description: "" }),
        updatePkp: prepare.updatePkp({ pkp_id: 1, name: "p", description: "" }),
        setWalletOps: prepare.setWalletOps({ pkp_id: 1, denied_ops: ["getPrivateKey", "signP256"] }),
        updateGroup: prepare.updateGroup({
          group_id: 1,
          name: "h",
          description: "",
          cid_hashes_permitted: [],
          pkp_ids_permitted: [],
        }),
        addActionToGroup: prepare.addActionToGroup(one),
        removeActionFromGroup: prepare.removeActionFromGroup(one),
        addPkpToGroup: prepare.addPkpToGroup(one),
        removePkpFromGroup: prepare.removePkpFromGroup(one),
        changeGroupActions: prepare.changeGroupActions({ id: 1, add: [OTHER_CID], remove: [] }),
        changeGroupPkps: prepare.changeGroupPkps({ id: 1, add: [pkp.wallet_address], remove: [] }),
        addAction: prepare.addAction({ action_ipfs_cid: CID, name: "a", description: "" }),
        updateActionMetadata: prepare.updateActionMetadata({ hashed_cid: HASH, name: "b", description: "" }),
        updateUsageApiKey: prepare.updateUsageApiKey({ usage_api_key: key.api_key_hash, ...permissions([0]) }),
        updateUsageApiKeyMetadata: prepare.updateUsageApiKeyMetadata({
          usage_api_key: key.api_key_hash,
          name: "k",
          description: "",
        }),
      });
      expect(await owner.account()).to.include({
        name: "New",
        group_count: 1,
        wallet_count: 1,
        action_count: 2,
        usage_api_key_count: 1,
      });
      expect((await owner.listWallets()).items[0]).to.deep.include({
        name: "p",
        denied_ops: ["getPrivateKey", "signP256"],
      });
      expect((await owner.listGroups()).items[0]).to.include({ name: "h", pkp_count: 1, action_count: 1 });
      expect((await owner.listActions()).items.map(({ name }) => name)).to.have.members(["b", ""]);
      expect((await owner.listApiKeys()).items[0]).to.deep.include({ name: "k", execute_in_groups: ["0"] });
      await execute({
        deleteAction: prepare.deleteAction(one),
        removeUsageApiKey: prepare.removeUsageApiKey({ usage_api_key: key.api_key_hash }),
        revokeAllUsageApiKeys: prepare.revokeAllUsageApiKeys(),
        batch: prepare.batch([await prepare.addGroup({ group_name: "i", group_description: "" })]),
        removeGroup: prepare.removeGroup(one),
        transferOwnership: prepare.transferOwnership({ new_owner_address: successor }),
      });
      expect(await owner.account()).to.include({
        owner: successor,
        group_count: 1,
        action_count: 1,
        usage_api_key_count: 0,
      });
      expect([...done]).to.have.members(Object.keys(prepare));
    });

    it("tells a delegate that it is not the owner instead of sending", async () => {
      const owner = await ownerOf(delegate, { owner: safe.address });
      expect(await codeOf(owner.addGroup({ group_name: "g", group_description: "" }))).to.equal("not_the_owner");
      expect(await codeOf(owner.balance())).to.equal("invalid_argument");
    });

    it("changes nothing when one call of a file is refused", async () => {
      const owner = await ownerOf(delegate, { owner: safe.address });
      const before = await owner.account();
      const writes = [
        await owner.prepare.updateAccount({ name: "half", description: "" }),
        await owner.prepare.removeGroup({ group_id: 99 }),
      ];
      const error: unknown = await safe
        .execute(owner.safeFile(writes, { name: "broken" }).transactions)
        .catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(Error);
      expect(await owner.account()).to.deep.equal(before);
    });
  });

  describe("refused", () => {
    it("by the contract, under the API's codes, before anything is sent", async () => {
      const { owner, wallet } = await freshOwner();
      const sent = await chain.provider.getTransactionCount(wallet.address);
      const foreign = minted(await ownerOf(await chain.wallet()), PathKind.pkp);
      const key = mintedKey(owner);
      const refusals = {
        account_id_taken: owner.createAccount({ account_name: "again", account_description: "" }),
        unknown_group: owner.removeGroup({ group_id: 7 }),
        unknown_action: owner.deleteAction({ hashed_cid: HASH }),
        unknown_pkp: owner.updatePkp({ pkp_id: wallet.address, name: "", description: "" }),
        unknown_pkp_number: owner.updatePkp({ pkp_id: 3, name: "", description: "" }),
        unknown_usage_key: owner.removeUsageApiKey({ usage_api_key: key.api_key_hash }),
        foreign_derivation_path: owner.registerPkp(foreign),
        string_too_long: owner.updateAccount({ name: "x".repeat(129), description: "" }),
        same_owner: owner.transferOwnership({ new_owner_address: wallet.address }),
        zero_address: owner.transferOwnership({ new_owner_address: `0x${"0".repeat(40)}` }),
        value_too_large: owner.attachUsageKey(key, permissions([], { expiration: String(2n ** 40n) })),
      };
      for (const [code, refusal] of Object.entries(refusals)) expect(await codeOf(refusal)).to.equal(code);
      expect(await chain.provider.getTransactionCount(wallet.address)).to.equal(sent);
    });

    it("before any request, when an argument is invalid", async () => {
      const { owner } = await freshOwner();
      const key = randomBytes(32).toString("base64").slice(1);
      const refusals = [
        async () =>
          (await ownerOf(await chain.wallet(), { accountId: owner.accountId })).createAccount({
            account_name: "a",
            account_description: "",
          }),
        () => owner.updateAccount({ name: "half a pair \ud800", description: "" }),
        () => owner.addGroup({ group_name: "g" } as never),
        () => owner.removeGroup({ group_id: 0 }),
        () => owner.removeGroup({ group_id: "first" }),
        () => owner.removeGroup({ group_id: 2 ** 53 }),
        () => owner.addActionToGroup({ group_id: 1, action_ipfs_cid: HASH }),
        () => owner.deleteAction({ hashed_cid: CID }),
        () => owner.addPkpToGroup({ group_id: 1, pkp_id: 0 }),
        () => owner.addPkpToGroup({ group_id: 1, pkp_id: "0x12zz" }),
        () => owner.transferOwnership({ new_owner_address: "vitalik.eth" }),
        () => owner.removeUsageApiKey({ usage_api_key: key }),
        () => ownerOf(Wallet.createRandom().connect(chain.provider), { accountId: "0x12" }),
        () => ownerOf(Wallet.createRandom().connect(chain.provider), { owner: "0x12" }),
      ];
      for (const refused of refusals) {
        const error: unknown = await refused().then(
          () => undefined,
          (reason: unknown) => reason,
        );
        expect(error, String(refused)).to.be.instanceOf(ClientError).with.property("code", "invalid_argument");
        expect((error as Error).message).not.to.include(key);
      }
    });

    it("when another wallet signs", async () => {
      const { owner } = await freshOwner();
      const stranger = await ownerOf(await chain.wallet(), { accountId: owner.accountId });
      expect(await codeOf(stranger.addGroup({ group_name: "g", group_description: "" }))).to.equal("not_authorized");
    });

    it("when wallet and service are on different chains, or the service names another contract than the expected one", async () => {
      const wallet = await chain.wallet();
      expect(await codeOf(ownerOf(wallet, { expect: { chainId: 1 } }))).to.equal("wrong_chain");
      expect(await codeOf(ownerOf(wallet, { expect: { contractAddress: wallet.address } }))).to.equal("wrong_chain");
      expect(
        (await ownerOf(wallet, { expect: { contractAddress: chain.contractAddress, chainId: 31337n } })).chainId,
      ).to.equal(31337n);
      expect(await codeOf(ownerOf(Wallet.createRandom()))).to.equal("no_provider");
    });

    it("when the wallet's user declines, or has no gas", async () => {
      const { owner, wallet } = await freshOwner();
      const declining = await ownerOf(new Declining(wallet), { accountId: owner.accountId });
      expect(await codeOf(declining.addGroup({ group_name: "g", group_description: "" }))).to.equal("wallet_declined");
      expect(await codeOf(declining.mintPkp())).to.equal("wallet_declined");
      await chain.provider.send("anvil_setBalance", [wallet.address, "0x0"]);
      expect(await codeOf(owner.addGroup({ group_name: "g", group_description: "" }))).to.equal("transaction_failed");
    });
  });

  it("survives a speed-up in the wallet, and reports a cancelled transaction", async () => {
    const { owner, wallet } = await freshOwner();
    await chain.provider.send("evm_setAutomine", [false]);
    try {
      const pending = owner.addGroup({ group_name: "faster", group_description: "" });
      const replaced = await replaceWhenPending(wallet, (first) => ({ to: first.to, data: first.data }));
      expect(await pending).to.include({ group_id: "1", transaction_hash: replaced });
      const cancelled = owner.addGroup({ group_name: "never", group_description: "" });
      const [code] = await Promise.all([codeOf(cancelled), replaceWhenPending(wallet, () => ({ to: wallet.address }))]);
      expect(code).to.equal("wallet_declined");
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

/** A wallet whose user declines. */
class Declining extends AbstractSigner {
  constructor(readonly wallet: HDNodeWallet) {
    super(wallet.provider);
  }
  getAddress = () => this.wallet.getAddress();
  connect = (): never => {
    throw new Error("not used");
  };
  signTransaction = () => this.#no();
  signMessage = () => this.#no();
  signTypedData = () => this.#no();
  override sendTransaction = (_transaction: TransactionRequest) => this.#no();
  #no(): Promise<never> {
    return Promise.reject(
      makeError("user rejected action", "ACTION_REJECTED", { action: "unknown", reason: "rejected" }),
    );
  }
}
