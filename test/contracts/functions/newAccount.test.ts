import { expect } from "chai";
import { packedId } from "../support/model";
import { ALICE_ID, ALICE_KEY } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { cid, number } from "../support/world";
import { describeFunction } from "../support/tree";

const NEW = number("new");
const args = (id: bigint, managed: boolean, owner: string) => [id, managed, "name", "description", owner];

describeFunction("newAccount", {
  managed: {
    "by a payer, id free: makes the account": ({ world, ends }) =>
      ends("payer", "newAccount", args(NEW, true, world.cast.carol.address), "ok"),
    "by any other caller, the owner included: NotAuthorized": async ({ world, ends }) => {
      for (const who of ["carol", "stranger", "admin"] as const)
        await ends(who, "newAccount", args(NEW, true, world.cast.carol.address), "NotAuthorized");
    },
    "id zero: ZeroId": ({ world, ends }) =>
      ends("payer", "newAccount", args(0n, true, world.cast.carol.address), "ZeroId"),
    "owner zero: ZeroAddress": ({ ends }) => ends("payer", "newAccount", args(NEW, true, ANY_PKP), "ZeroAddress"),
    "owner is the contract: OwnerIsThisContract": async ({ world, ends }) =>
      ends("payer", "newAccount", args(NEW, true, await world.manager.getAddress()), "OwnerIsThisContract"),
    "owner is the forwarder: ForwarderNotAllowed": async ({ world, ends }) =>
      ends("payer", "newAccount", args(NEW, true, await world.forwarder.getAddress()), "ForwarderNotAllowed"),
    "id is a usage key's: creates the account, which the id then refers to": async ({ world, ends }) => {
      await ends("payer", "newAccount", args(ALICE_KEY, true, world.cast.carol.address), "ok");
      expect(await world.manager.accountOf(ALICE_KEY)).to.equal(ALICE_KEY);
      expect(await world.manager.canExecuteAction(ALICE_KEY, cid(1))).to.equal(false);
    },
    "id was a usage key's: creates the account": async ({ world, ends }) => {
      await world.do(world.cast.payer, "removeUsageApiKey", ALICE_ID, ALICE_KEY);
      await ends("payer", "newAccount", args(ALICE_KEY, true, world.cast.carol.address), "ok");
    },
    "id is an account's: AccountIdTaken": async ({ world, bobId, ends }) => {
      for (const id of [ALICE_ID, bobId])
        await ends("payer", "newAccount", args(id, true, world.cast.carol.address), "AccountIdTaken");
    },
    "the packed id of a wallet, which then finds it taken (documented)": async ({ world, ends }) => {
      const { carol, payer } = world.cast;
      await ends("payer", "newAccount", args(packedId(carol.address), true, payer.address), "ok");
      await ends("carol", "newChainSecuredAccount", ["", ""], "AccountIdTaken");
    },
  },
  unmanaged: {
    "by the owner under its packed id: makes the account": ({ world, ends }) =>
      ends("carol", "newAccount", args(packedId(world.cast.carol.address), false, world.cast.carol.address), "ok"),
    "for another owner: NotAuthorized": ({ world, ends }) =>
      ends(
        "carol",
        "newAccount",
        args(packedId(world.cast.stranger.address), false, world.cast.stranger.address),
        "NotAuthorized",
      ),
    "under another id: ForeignAccountId": ({ world, ends }) =>
      ends("carol", "newAccount", args(NEW, false, world.cast.carol.address), "ForeignAccountId"),
    "a second time: AccountIdTaken": ({ world, bobId, ends }) =>
      ends("bob", "newAccount", args(bobId, false, world.cast.bob.address), "AccountIdTaken"),
  },
});
