/** A ChainSecured owner that is a Safe: its writes exported as files for the Transaction Builder, and executed. */
import { expect } from "chai";
import { Wallet } from "ethers";
import { decodeCalls, type OwnerWrite } from "../../client";
import { contractInterface } from "../../client/contract";
import { PathKind, packedAccountId, type Address } from "../../protocol/ids";
import type { TestChain } from "../support/chain";
import { CID, HASH, OTHER_CID, codeOf, minted, mintedKey, ownerBed, permissions } from "../support/owners";
import { deploySafe, type TestSafe } from "../support/safe";

describe("a ChainSecured owner's writes with a 2-of-3 Safe", () => {
  const bed = ownerBed();
  const { ownerOf } = bed;
  let chain: TestChain;
  before(() => void (chain = bed.chain()));

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
      expect(call).to.include({ to: chain.contractAddress, value: "0" });
      const { contractMethod: method, contractInputsValues: values } = call;
      const given = method.inputs.map(({ name, type }) =>
        type.endsWith("[]")
          ? (JSON.parse(values[name] ?? "") as unknown)
          : type === "bool"
            ? values[name] === "true"
            : values[name],
      );
      expect(contractInterface.encodeFunctionData(method.name as never, given as never), method.name).to.equal(
        call.data,
      );
    }
    expect(file.transactions.at(0)?.contractInputsValues).to.deep.equal({ name: "DAO", description: "" });
    const whole = await prepare.batch(
      await Promise.all(["a", "b"].map((name) => prepare.addAction({ action_ipfs_cid: CID, name, description: "" }))),
    );
    expect(
      decodeCalls(whole.data).map(({ functionName, args }) => [
        functionName,
        args.find(({ name }) => name === "name")?.value,
      ]),
    ).to.deep.equal([
      ["addAction", "a"],
      ["addAction", "b"],
    ]);

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
