import { ALICE_ID, ALICE_PKP, BOB_PKP } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { walletOf, pathFor } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("updatePkpMetadata", {
  "other strings: changes them": ({ ends }) =>
    ends("payer", "updatePkpMetadata", [ALICE_ID, ALICE_PKP, "hot", "wallet"], "ok"),
  "the same strings: no effect": ({ ends }) =>
    ends("payer", "updatePkpMetadata", [ALICE_ID, ALICE_PKP, "", ""], "silent"),
  "unregistered, another account's, zero, or a usage key's wallet: UnknownPkp": async ({ world, ends }) => {
    const wallet = walletOf("usage key's");
    await world.do(world.cast.payer, "registerWalletDerivation", ALICE_ID, wallet, pathFor(ALICE_ID, "w", 2n), "", "");
    for (const pkp of [walletOf("none"), BOB_PKP, ANY_PKP, wallet])
      await ends("payer", "updatePkpMetadata", [ALICE_ID, pkp, "x", ""], "UnknownPkp");
  },
});
