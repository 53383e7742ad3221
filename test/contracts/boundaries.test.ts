// Edges of packed sets: groups are stored 224 to a word, members of a group 256 to a page. On both sides of each edge
// every view, decision and scope must equal the model's; the same for pages, strings and limits.
import { setStorageAt } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import { ethers } from "hardhat";
import { count } from "../support/counts";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, executeKey, fullKey, twoAccounts } from "./support/stages";
import { ANY_PKP } from "./support/state";
import { expectViews } from "./support/views";
import { accountSlot, cid, number, pathFor, staged, walletOf, type World } from "./support/world";
import { must } from "../support/must";

const EDGES = [223n, 224n, 225n, 255n, 256n, 257n, 447n, 448n, 449n].slice(0, count(6, 9));
const LAST = 450n;

/** Adds groups on chain in batches and in the model one by one. */
async function growTo(world: World, last: bigint): Promise<void> {
  const { manager, model, cast } = world;
  const payer = manager.connect(cast.payer);
  const encoded = manager.interface.encodeFunctionData("addGroup", [ALICE_ID, "", "", [], []]);
  for (let at = must(model.state.accounts.get(ALICE_ID)).lastGroupId; at < last;) {
    const step = last - at < 50n ? last - at : 50n;
    await payer.multicall(Array<string>(Number(step)).fill(encoded));
    for (let i = 0n; i < step; i++)
      model.call(cast.payer.address, "addGroup", [ALICE_ID, "", "", [], []], model.lastTime);
    at += step;
  }
}

async function manyGroups() {
  const { world } = await twoAccounts();
  await growTo(world, LAST);
  return { world, payer: world.cast.payer };
}

describe("Boundaries of group words", () => {
  for (const groupId of EDGES) {
    it(`group ${groupId}: listed, permitted by name, by list and by wildcard, and removed`, async () => {
      const { world, payer } = await staged(manyGroups);
      const { manager } = world;
      const [named, wildcard] = [number("named"), number("wildcard")];
      await world.do(payer, "addActionToGroup", ALICE_ID, groupId, cid(2));
      await world.do(payer, "addPkpToGroup", ALICE_ID, groupId, ALICE_PKP);
      await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, named, [groupId]));
      await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, wildcard, ALL));
      await world.do(
        payer,
        "setUsageApiKey",
        ...executeKey(ALICE_ID, ALICE_KEY, [groupId - 1n, groupId + 1n, groupId - 1n]),
      );
      const may = (key: bigint) => manager.canUseWalletInAction(key, cid(2), ALICE_PKP);
      expect([await may(named), await may(wildcard), await may(ALICE_ID), await may(ALICE_KEY)]).to.deep.equal([
        true,
        true,
        true,
        false,
      ]);
      for (const other of [groupId - 1n, groupId, groupId + 1n]) {
        for (const scope of [0, 4, 5, 6])
          expect(await manager.hasScope(named, scope, other)).to.equal(other === groupId);
      }
      const key = await manager.getUsageApiKey(ALICE_KEY);
      expect([...key.executeInGroups]).to.deep.equal([groupId - 1n, groupId + 1n]);
      await world.do(payer, "addActionToGroup", named, groupId, cid(3));
      expect(await world.call(payer, "addActionToGroup", [named, groupId - 1n, cid(3)])).to.equal("MissingScope");
      await world.do(payer, "removeGroup", named, groupId);
      expect([await may(named), await may(wildcard), await may(ALICE_ID)]).to.deep.equal([false, false, false]);
      expect(await manager.hasScope(named, 0, groupId)).to.equal(false);
      expect(await world.call(payer, "removeGroup", [named, groupId])).to.equal("UnknownGroup");
      const { items, total } = await manager.listGroups(ALICE_ID, 0, 1000);
      expect(total).to.equal(LAST - 1n);
      expect(items.some((group) => group.id === groupId)).to.equal(false);
    });
  }

  it("any action and any PKP work across words, alone and together", async () => {
    const { world, payer } = await staged(manyGroups);
    await world.do(payer, "addActionToGroup", ALICE_ID, 256n, 0n);
    await world.do(payer, "addPkpToGroup", ALICE_ID, 256n, ANY_PKP);
    await world.do(payer, "addPkpToGroup", ALICE_ID, 448n, ANY_PKP);
    await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, ALICE_KEY, [448n]));
    const key = number("all");
    await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, key, ALL));
    expect(await world.manager.canUseWalletInAction(key, cid(77), ALICE_PKP)).to.equal(true);
    expect(await world.manager.canUseWalletInAction(ALICE_KEY, cid(77), ALICE_PKP)).to.equal(false);
  });

  it(
    "an action that is removed and added again starts without memberships, in every word; " +
      "others in the same words stay",
    async () => {
      const { world, payer } = await staged(manyGroups);
      const may = (action: bigint) => world.manager.canUseWalletInAction(ALICE_ID, action, ALICE_PKP);
      for (const groupId of EDGES) await world.do(payer, "addPkpToGroup", ALICE_ID, groupId, ALICE_PKP);
      for (const action of [cid(2), cid(3)])
        for (const groupId of EDGES) await world.do(payer, "addActionToGroup", ALICE_ID, groupId, action);
      expect([await may(cid(2)), await may(cid(3))]).to.deep.equal([true, true]);
      await world.do(payer, "removeAction", ALICE_ID, cid(2));
      await world.do(payer, "addAction", ALICE_ID, "", "", cid(2));
      expect([await may(cid(2)), await may(cid(3))]).to.deep.equal([false, true]);
      for (const groupId of EDGES)
        expect((await world.manager.getGroup(ALICE_ID, groupId)).actionCount, `group ${groupId}`).to.equal(1n);
      await world.do(payer, "addActionToGroup", ALICE_ID, LAST, cid(2)); // a group without a PKP
      expect(await may(cid(2))).to.equal(false);
      for (const groupId of EDGES)
        expect(await world.call(payer, "removeActionFromGroup", [ALICE_ID, groupId, cid(2)])).to.equal("NotInGroup");
    },
  );

  it("memberships in different words are apart, for actions and PKPs of every index", async () => {
    const { world, payer } = await staged(manyGroups);
    const { manager } = world;
    const wallets = [ALICE_PKP, walletOf("second"), walletOf("third"), walletOf("fourth")];
    const [first, later] = [number("first"), number("later")];
    await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, first, [224n]));
    await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, later, [448n]));
    await world.do(payer, "changeGroupMembers", ALICE_ID, 448n, [0n], [], [ANY_PKP], []);
    for (const [i, wallet] of wallets.entries()) {
      const action = cid(i + 1);
      if (i > 0) await world.do(payer, "registerWalletDerivation", ALICE_ID, wallet, pathFor(ALICE_ID, wallet), "", "");
      await world.do(payer, "changeGroupMembers", ALICE_ID, 224n, [action], [], [wallet], []);
      await world.do(payer, "removeActionFromGroup", ALICE_ID, 448n, 0n);
      // Group 224 is bit 0 of word 1, group 448 bit 0 of word 2.
      const may = (key: bigint) => manager.canUseWalletInAction(key, action, wallet);
      expect([await may(first), await may(later)], `index ${i + 1}`).to.deep.equal([true, false]);
      await world.do(payer, "addActionToGroup", ALICE_ID, 448n, 0n);
      await world.do(payer, "removePkpFromGroup", ALICE_ID, 448n, ANY_PKP);
      expect(await may(later), `PKP ${i + 1}`).to.equal(false);
      await world.do(payer, "addPkpToGroup", ALICE_ID, 448n, ANY_PKP);
    }
  });

  it("the newest group counts where it begins a word and where it ends one", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    const key = number("newest");
    for (const newest of [223n, 224n, 225n, 447n, 448n, 449n]) {
      await growTo(world, newest);
      await world.do(payer, "changeGroupMembers", ALICE_ID, newest, [cid(9)], [], [ALICE_PKP], []);
      await world.do(payer, "setUsageApiKey", ...executeKey(ALICE_ID, key, [newest]));
      expect(await world.manager.canUseWalletInAction(key, cid(9), ALICE_PKP), `group ${newest}`).to.equal(true);
    }
  });

  it("a group that names the action is found behind one that allows any", async () => {
    const { world, payer } = await staged(manyGroups);
    const byName = async () => {
      const { allowed, actionByName } = await world.manager.explainExecution(ALICE_ID, cid(5), ALICE_PKP);
      expect(allowed).to.equal(true);
      return actionByName;
    };
    await world.do(payer, "addActionToGroup", ALICE_ID, 1n, 0n);
    expect(await byName()).to.equal(false);
    await world.do(payer, "changeGroupMembers", ALICE_ID, 448n, [cid(5)], [], [ALICE_PKP], []);
    expect(await byName()).to.equal(true);
  });

  it("replacing a key's lists leaves nothing of the old ones, in any word", async () => {
    const { world, payer } = await staged(manyGroups);
    const { manager } = world;
    await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, EDGES));
    await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, [1n]));
    for (const groupId of EDGES) expect(await manager.hasScope(ALICE_KEY, 0, groupId)).to.equal(false);
    await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, [...EDGES].reverse()));
    // The same set: no event.
    await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, [...EDGES, ...EDGES]));
    await world.do(payer, "setUsageApiKey", ...fullKey(ALICE_ID, ALICE_KEY, [2n]));
    for (const groupId of [1n, ...EDGES]) expect(await manager.hasScope(ALICE_KEY, 5, groupId)).to.equal(false);
  });
});

describe("Boundaries of member pages", () => {
  const MEMBERS = 520;

  it("a group with members on both sides of each page edge lists, removes and counts them", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    const numbers = Array.from({ length: MEMBERS }, (_, i) => i + 2);
    for (let i = 0; i < MEMBERS; i += 130) {
      await world.do(payer, "changeGroupMembers", ALICE_ID, 1n, numbers.slice(i, i + 130).map(cid), [], [], []);
    }
    for (const i of [254, 255, 256, 257, 258]) await world.do(payer, "removeActionFromGroup", ALICE_ID, 1n, cid(i));
    for (const i of [510, 511, 512, 513]) await world.do(payer, "removeAction", ALICE_ID, cid(i));
    const wanted = [...must(must(world.model.state.accounts.get(ALICE_ID)).groups.get(1n)).actions];
    const { items, total } = await world.manager.listActionsInGroup(ALICE_ID, 1n, 0, 1000);
    expect(total).to.equal(BigInt(wanted.length));
    expect(items.map((item) => item.actionHash)).to.deep.equal(wanted);
    const pages = await Promise.all(
      [0, 200, 400].map((offset) => world.manager.listActionsInGroup(ALICE_ID, 1n, offset, 200)),
    );
    expect(pages.flatMap((page) => page.items.map((item) => item.actionHash))).to.deep.equal(wanted);
    await world.do(payer, "updateGroup", ALICE_ID, 1n, "", "", [cid(600), cid(256)], []);
    expect((await world.manager.getGroup(ALICE_ID, 1n)).actionCount).to.equal(2n);
    await expectViewsOfSmall(world);
  }).timeout(60_000);

  it("a group lists, pages, counts and removes PKPs on both sides of a page edge", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    const wallets = [ALICE_PKP, ...Array.from({ length: 300 }, (_, i) => walletOf(`pkp ${i + 2}`))];
    const register = (wallet: string): [bigint, string, bigint, string, string] => [
      ALICE_ID,
      wallet,
      pathFor(ALICE_ID, wallet),
      "",
      "",
    ];
    for (let i = 1; i < wallets.length; i += 50) {
      const calls = wallets.slice(i, i + 50).map(register);
      await world.manager
        .connect(payer)
        .multicall(calls.map((args) => world.manager.interface.encodeFunctionData("registerWalletDerivation", args)));
      for (const args of calls) world.model.call(payer.address, "registerWalletDerivation", args, world.model.lastTime);
    }
    for (let i = 1; i < wallets.length; i += 100)
      await world.do(payer, "changeGroupMembers", ALICE_ID, 1n, [], [], wallets.slice(i, i + 100), []);
    const shown = async (offset: number, limit: number) => {
      const { items, total } = await world.manager.listPkpsInGroup(ALICE_ID, 1n, offset, limit);
      return { wallets: items.map(({ pkpId }) => pkpId), numbers: items.map(({ number }) => number), total };
    };
    const numbers = wallets.map((_, i) => BigInt(i + 1));
    expect(await shown(0, 1000)).to.deep.equal({ wallets, numbers, total: BigInt(wallets.length) });
    for (const offset of [254, 255, 256, 257]) {
      expect(await shown(offset, 3)).to.deep.equal({
        wallets: wallets.slice(offset, offset + 3),
        numbers: numbers.slice(offset, offset + 3),
        total: BigInt(wallets.length),
      });
    }
    await world.do(payer, "updateGroup", ALICE_ID, 1n, "group", "", [cid(1)], wallets.slice(250, 260));
    expect((await shown(0, 1000)).wallets).to.deep.equal(wallets.slice(250, 260));
    expect((await world.manager.getGroup(ALICE_ID, 1n)).pkpCount).to.equal(10n);
  }).timeout(60_000);

  it("an account with more actions than a group's pages can distinguish lists and removes them", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    const address = await world.manager.getAddress();
    const slot = await accountSlot(world, ALICE_ID);
    const word = BigInt(await ethers.provider.getStorage(address, slot));
    const at = 208n; // owner 160, flags 8, epoch 16, lengths 24: then lastAction
    expect((word >> at) & 0xffffffn).to.equal(1n);
    for (const lastAction of [28_415n, 28_671n, 28_672n, 60_000n]) {
      await setStorageAt(address, slot, (word & ~(0xffffffn << at)) | (lastAction << at));
      const fresh = number(`action after ${lastAction}`);
      await world.do(payer, "addActionToGroup", ALICE_ID, 1n, fresh);
      expect(await world.manager.canUseWalletInAction(ALICE_KEY, fresh, ALICE_PKP)).to.equal(true);
      // A group with no other member: no earlier one marks its page.
      await world.do(payer, "addGroup", ALICE_ID, "", "", [fresh], []);
      const alone = must(world.model.state.accounts.get(ALICE_ID)).lastGroupId;
      expect((await world.manager.getGroup(ALICE_ID, alone)).actionCount, `after ${lastAction}`).to.equal(1n);
      const { items: only } = await world.manager.listActionsInGroup(ALICE_ID, alone, 0, 9);
      expect(only.map(({ actionHash }) => actionHash)).to.deep.equal([fresh]);
    }
    const { items, total } = await world.manager.listActionsInGroup(ALICE_ID, 1n, 0, 1000);
    expect(total).to.equal(5n);
    expect(items.map((item) => item.actionHash)).to.deep.equal([
      ...must(must(world.model.state.accounts.get(ALICE_ID)).groups.get(1n)).actions,
    ]);
    await world.do(payer, "updateGroup", ALICE_ID, 1n, "", "", [cid(1)], []);
    expect((await world.manager.getGroup(ALICE_ID, 1n)).actionCount).to.equal(1n);
  });

  it("the last epoch of usage keys is reached and not passed", async () => {
    const { world } = await staged(twoAccounts);
    const address = await world.manager.getAddress();
    const slot = await accountSlot(world, ALICE_ID);
    const word = BigInt(await ethers.provider.getStorage(address, slot));
    const at = 168n; // owner 160, flags 8: then epoch
    expect((word >> at) & 0xffffn).to.equal(0n);
    await setStorageAt(address, slot, (word & ~(0xffffn << at)) | (0xfffen << at));
    const set = (key: bigint): Promise<string | undefined> =>
      world.call(world.cast.payer, "setUsageApiKey", executeKey(ALICE_ID, key, ALL));
    const revokeAll = "revokeAllUsageApiKeys";
    expect(await set(number("one"))).to.equal(undefined);
    expect(await world.call(world.cast.payer, revokeAll, [ALICE_ID])).to.equal(undefined);
    expect(await set(number("two"))).to.equal(undefined);
    await expect(world.manager.connect(world.cast.payer).revokeAllUsageApiKeys(ALICE_ID))
      .to.be.revertedWithCustomError(world.manager, "ValueTooLarge")
      .withArgs(65_536n, 65_535n);
    expect(await world.manager.canExecuteAction(number("two"), cid(1))).to.equal(true);
  });

  /** `expectViews` asks for pages of 200, so larger lists are excluded. */
  async function expectViewsOfSmall(world: World): Promise<void> {
    const state = structuredClone(world.model.state);
    state.accounts.delete(ALICE_ID);
    for (const [id, key] of state.keys) if (key.accountId === ALICE_ID) state.keys.delete(id);
    await expectViews(world.manager, state);
  }
});

describe("Boundaries of pages, strings and ids", () => {
  it("pages hold at most 1,000 items (200 keys); past the end they are empty", async () => {
    const { world } = await staged(twoAccounts);
    const { manager } = world;
    const lists: [string, bigint, (offset: bigint, limit: bigint) => Promise<{ items: unknown[] }>][] = [
      ["groups", 1000n, (o, l) => manager.listGroups(ALICE_ID, o, l)],
      ["actions", 1000n, (o, l) => manager.listActions(ALICE_ID, o, l)],
      ["actions in a group", 1000n, (o, l) => manager.listActionsInGroup(ALICE_ID, 1, o, l)],
      ["PKPs", 1000n, (o, l) => manager.listPkps(ALICE_ID, o, l)],
      ["PKPs in a group", 1000n, (o, l) => manager.listPkpsInGroup(ALICE_ID, 1, o, l)],
      ["usage keys", 200n, (o, l) => manager.listUsageApiKeys(ALICE_ID, o, l)],
    ];
    const huge = (1n << 256n) - 1n;
    for (const [what, max, list] of lists) {
      expect((await list(0n, max)).items.length, what).to.equal(1);
      await expect(list(0n, max + 1n), what)
        .to.be.revertedWithCustomError(manager, "PageTooLarge")
        .withArgs(max + 1n, max);
      for (const offset of [1n, 2n, huge]) expect((await list(offset, max)).items.length, what).to.equal(0);
      expect((await list(0n, 0n)).items.length, what).to.equal(0);
    }
  });

  it("names of 128 and descriptions of 1,024 UTF-8 bytes are stored whole; one byte more is refused", async () => {
    const { world } = await staged(twoAccounts);
    const { payer } = world.cast;
    const long = (length: number) => Array.from({ length }, (_, i) => String.fromCharCode(97 + (i % 26))).join("");
    for (const [name, description] of [
      [long(128), long(1024)],
      ["", long(1024)],
      [long(128), ""],
      ["é".repeat(64), "😀".repeat(256)],
      [long(33), long(31)],
    ]) {
      await world.do(payer, "updateAccountMetadata", ALICE_ID, name, description);
      await world.do(payer, "addGroup", ALICE_ID, name, description, [], []);
      const account = await world.manager.getAccount(ALICE_ID);
      expect([account.name, account.description]).to.deep.equal([name, description]);
    }
    await world.do(payer, "updateAccountMetadata", ALICE_ID, "a", "b"); // shorter than the text before
    await world.do(payer, "updateAccountMetadata", ALICE_ID, "ab", ""); // same bytes, split differently
    expect((await world.manager.getAccount(ALICE_ID)).name).to.equal("ab");
    for (const [name, description] of [
      [long(129), ""],
      ["", long(1025)],
      ["é".repeat(65), ""],
    ]) {
      const labels = [name, description];
      const calls: [string, ...unknown[]][] = [
        ["newAccount", number("new"), true, ...labels, payer.address],
        ["newChainSecuredAccount", ...labels],
        ["updateAccountMetadata", ALICE_ID, ...labels],
        ["setUsageApiKey", ALICE_ID, number("k"), 0n, 0n, ...labels, false, false, false, [], [], [], []],
        ["updateUsageApiKeyMetadata", ALICE_ID, ALICE_KEY, ...labels],
        ["registerWalletDerivation", ALICE_ID, walletOf("w"), pathFor(ALICE_ID, "w"), ...labels],
        ["registerWalletDerivation", ALICE_ID, walletOf("w"), pathFor(ALICE_ID, "w", 2n), ...labels],
        ["updatePkpMetadata", ALICE_ID, ALICE_PKP, ...labels],
        ["addGroup", ALICE_ID, ...labels, [], []],
        ["updateGroup", ALICE_ID, 1n, ...labels, [], []],
        ["updateGroupMetadata", ALICE_ID, 1n, ...labels],
        ["addAction", ALICE_ID, ...labels, cid(1)],
        ["updateActionMetadata", ALICE_ID, cid(1), 0n, ...labels],
      ];
      for (const [call, ...args] of calls) expect(await world.call(payer, call, args), call).to.equal("StringTooLong");
    }
    await expectViews(world.manager, world.model.state);
  });

  it("zero is never a valid id: accounts, keys, wallets, actions, groups and PKP numbers", async () => {
    const { world } = await staged(twoAccounts);
    const { payer, alice } = world.cast;
    const { manager } = world;
    expect(await world.call(payer, "newAccount", [0n, true, "", "", alice.address])).to.equal("ZeroId");
    expect(await world.call(payer, "newAccount", [1n, true, "", "", ANY_PKP])).to.equal("ZeroAddress");
    expect(await world.call(payer, "newAccount", [1n, true, "", "", await manager.getAddress()])).to.equal(
      "OwnerIsThisContract",
    );
    expect(await world.call(payer, "setUsageApiKey", executeKey(ALICE_ID, 0n, ALL))).to.equal("ZeroId");
    expect(
      await world.call(payer, "registerWalletDerivation", [ALICE_ID, ANY_PKP, pathFor(ALICE_ID, "x"), "", ""]),
    ).to.equal("ZeroAddress");
    expect(await world.call(payer, "addAction", [ALICE_ID, "", "", 0n])).to.equal("ActionZero");
    expect(await world.call(payer, "removeAction", [ALICE_ID, 0n])).to.equal("UnknownAction");
    expect(await world.call(payer, "transferOwnership", [ALICE_ID, ANY_PKP])).to.equal("ZeroAddress");
    for (const number of [0, 2])
      await expect(manager.pkpByNumber(ALICE_ID, number)).to.be.revertedWithCustomError(manager, "UnknownPkpNumber");
    expect(await manager.pkpByNumber(ALICE_ID, 1)).to.equal(ALICE_PKP);
    await expect(manager.getGroup(ALICE_ID, 0)).to.be.revertedWithCustomError(manager, "GroupZero");
    const { accountId, live, owner } = await manager.getKey(0);
    expect([accountId, live, owner]).to.deep.equal([0n, false, ANY_PKP]);
    expect(await manager.accountOf(0)).to.equal(0n);
  });

  it("a view called from address zero, the default of nodes, has no rights", async () => {
    const { world } = await staged(twoAccounts);
    const { manager } = world;
    const from = ANY_PKP;
    const data = manager.interface.encodeFunctionData("addGroup", [number("nobody"), "", "", [], []]);
    await expect(ethers.provider.call({ to: await manager.getAddress(), from, data })).to.be.revertedWithCustomError(
      manager,
      "NotAuthorized",
    );
  });
});
