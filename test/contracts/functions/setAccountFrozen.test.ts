import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, ALL, executeKey, fullKey } from "../support/stages";
import { cid, number, walletOf } from "../support/world";
import { describeFunction } from "../support/tree";

const OTHER = number("other key");
const FROZEN = 8n;

describeFunction("setAccountFrozen", {
  "true: every decision denies, of the account key and of usage keys, until false": async ({ world, ends }) => {
    const { manager } = world;
    const reasons = () =>
      Promise.all(
        [ALICE_ID, ALICE_KEY].map(async (key) => (await manager.explainExecution(key, cid(1), ALICE_PKP)).reason),
      );
    await ends("payer", "setAccountFrozen", [ALICE_ID, true], "ok");
    expect(await reasons()).to.deep.equal([FROZEN, FROZEN]);
    expect(await manager.canExecuteAction(ALICE_KEY, cid(1))).to.equal(false);
    expect(await manager.canUseWalletInAction(ALICE_KEY, cid(1), ALICE_PKP)).to.equal(false);
    expect(await manager.hasScope(ALICE_KEY, 0, 1)).to.equal(false);
    expect((await manager.getAccount(ALICE_ID)).frozen).to.equal(true);
    const { live, frozen } = await manager.getKey(ALICE_KEY);
    expect([live, frozen]).to.deep.equal([true, true]);
    await ends("payer", "setAccountFrozen", [ALICE_ID, false], "ok");
    expect(await reasons()).to.deep.equal([0n, 0n]);
  },
  "true: no usage key writes; the owner and its payers still do": async ({ ends }) => {
    await ends("payer", "setUsageApiKey", fullKey(ALICE_ID, OTHER, ALL), "ok");
    await ends("payer", "setAccountFrozen", [ALICE_ID, true], "ok");
    await ends("payer", "addGroup", [OTHER, "", "", [], []], "AccountFrozen");
    await ends("payer", "addActionToGroup", [OTHER, 1n, cid(2)], "AccountFrozen");
    await ends("payer", "addGroup", [ALICE_ID, "", "", [], []], "ok");
    await ends("alice", "setUsageApiKey", executeKey(ALICE_ID, number("third"), []), "ok");
    await ends("alice", "transferOwnership", [ALICE_ID, walletOf("new owner")], "ok");
  },
  "stays frozen through conversion and transfer": async ({ world, ends }) => {
    await ends("payer", "setAccountFrozen", [ALICE_ID, true], "ok");
    await ends("payer", "convertToChainSecuredAccount", [ALICE_ID, world.cast.alice.address], "ok");
    await ends("alice", "transferOwnership", [ALICE_ID, world.cast.carol.address], "ok");
    expect((await world.manager.explainExecution(ALICE_KEY, cid(1), ALICE_PKP)).reason).to.equal(FROZEN);
    await ends("carol", "setAccountFrozen", [ALICE_ID, false], "ok");
    expect(await world.manager.canExecuteAction(ALICE_KEY, cid(1))).to.equal(true);
  },
  "another account is unchanged": async ({ world, bobId, ends }) => {
    await ends("bob", "setAccountFrozen", [bobId, true], "ok");
    expect(await world.manager.canExecuteAction(ALICE_KEY, cid(1))).to.equal(true);
  },
  "the present value: no effect": async ({ ends }) => {
    await ends("payer", "setAccountFrozen", [ALICE_ID, false], "silent");
    await ends("payer", "setAccountFrozen", [ALICE_ID, true], "ok");
    await ends("payer", "setAccountFrozen", [ALICE_ID, true], "silent");
  },
});
