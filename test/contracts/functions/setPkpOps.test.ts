import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, ALICE_PKP, BOB_PKP } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { cid, pathFor, walletOf } from "../support/world";
import { describeFunction } from "../support/tree";

const MOST = (1n << 128n) - 1n;

describeFunction("setPkpOps", {
  "a PKP: the decision says what is denied, and still allows the run": async ({ world, ends }) => {
    const denied = async () => {
      const { allowed, deniedOps, derivationPath } = await world.manager.explainExecution(ALICE_KEY, cid(1), ALICE_PKP);
      expect([allowed, derivationPath]).to.deep.equal([true, pathFor(ALICE_ID, "pkp")]);
      return deniedOps;
    };
    expect(await denied()).to.equal(0n);
    for (const bits of [64n, 1023n, MOST, 0n]) {
      await ends("payer", "setPkpOps", [ALICE_ID, ALICE_PKP, bits], "ok");
      expect(await denied()).to.equal(bits);
      expect((await world.manager.listPkps(ALICE_ID, 0, 9)).items[0]?.deniedOps).to.equal(bits);
    }
  },
  "the registered path is unchanged": async ({ world, ends }) => {
    await ends("payer", "setPkpOps", [ALICE_ID, ALICE_PKP, MOST], "ok");
    expect(await world.manager.getWalletDerivation(ALICE_ID, ALICE_PKP)).to.equal(pathFor(ALICE_ID, "pkp"));
    await ends("payer", "registerWalletDerivation", [ALICE_ID, ALICE_PKP, pathFor(ALICE_ID, "pkp"), "", ""], "silent");
    expect((await world.manager.explainExecution(ALICE_KEY, cid(1), ALICE_PKP)).deniedOps).to.equal(MOST);
  },
  "of another account's PKP of the same address: nothing is denied": async ({ world, bobId, ends }) => {
    await ends("bob", "registerWalletDerivation", [bobId, ALICE_PKP, pathFor(bobId, "x"), "", ""], "ok");
    await ends("bob", "setPkpOps", [bobId, ALICE_PKP, MOST], "ok");
    expect((await world.manager.explainExecution(ALICE_KEY, cid(1), ALICE_PKP)).deniedOps).to.equal(0n);
  },
  "the same set: no effect": async ({ ends }) => {
    await ends("payer", "setPkpOps", [ALICE_ID, ALICE_PKP, 0n], "silent");
    await ends("payer", "setPkpOps", [ALICE_ID, ALICE_PKP, 5n], "ok");
    await ends("payer", "setPkpOps", [ALICE_ID, ALICE_PKP, 5n], "silent");
  },
  "a set of 2^128 or more: ValueTooLarge": ({ ends }) =>
    ends("payer", "setPkpOps", [ALICE_ID, ALICE_PKP, MOST + 1n], "ValueTooLarge"),
  "another account's PKP, an unregistered one, any, or a usage key's wallet: UnknownPkp": async ({ world, ends }) => {
    const wallet = walletOf("a usage key's");
    await world.do(world.cast.payer, "registerWalletDerivation", ALICE_ID, wallet, pathFor(ALICE_ID, "k", 2n), "", "");
    for (const pkp of [BOB_PKP, walletOf("nobody's"), ANY_PKP, wallet])
      await ends("payer", "setPkpOps", [ALICE_ID, pkp, 1n], "UnknownPkp");
  },
});
