import { expect } from "chai";
import { ANY_PKP } from "../support/state";
import { walletOf } from "../support/world";
import { describeFunction } from "../support/tree";

const PAYER = walletOf("payer");

describeFunction("contract admin", {
  addApiPayer: {
    "new: a payer at once": async ({ world, ends }) => {
      await ends("admin", "addApiPayer", [world.cast.otherPayer.address], "ok");
      await ends("otherPayer", "newAccount", [1n, true, "", "", world.cast.carol.address], "ok");
    },
    "known: no effect": ({ world, ends }) => ends("admin", "addApiPayer", [world.cast.payer.address], "silent"),
    "zero: ZeroAddress": ({ ends }) => ends("admin", "addApiPayer", [ANY_PKP], "ZeroAddress"),
  },
  removeApiPayer: {
    "known: no payer at once": async ({ world, ends }) => {
      await ends("admin", "removeApiPayer", [world.cast.payer.address], "ok");
      expect(await world.manager.apiPayers()).to.deep.equal([]);
      await ends("payer", "newAccount", [1n, true, "", "", world.cast.carol.address], "NotAuthorized");
    },
    "unknown: UnknownApiPayer": ({ ends }) => ends("admin", "removeApiPayer", [PAYER], "UnknownApiPayer"),
  },
  setAdminApiPayer: {
    "another: set, without any right": async ({ world, ends }) => {
      await ends("admin", "setAdminApiPayer", [world.cast.stranger.address], "ok");
      await ends("stranger", "newAccount", [1n, true, "", "", world.cast.carol.address], "NotAuthorized");
    },
    "the same: no effect": async ({ ends }) => {
      await ends("admin", "setAdminApiPayer", [PAYER], "ok");
      await ends("admin", "setAdminApiPayer", [PAYER], "silent");
    },
    "zero: ZeroAddress": ({ ends }) => ends("admin", "setAdminApiPayer", [ANY_PKP], "ZeroAddress"),
  },
  "proposeAdmin and acceptAdmin": {
    "the proposed admin accepts: the old one loses its rights": async ({ world, ends }) => {
      await ends("admin", "proposeAdmin", [world.cast.carol.address], "ok");
      await ends("admin", "addApiPayer", [PAYER], "ok"); // still the admin
      await ends("carol", "acceptAdmin", [], "ok");
      await ends("admin", "addApiPayer", [PAYER], "NotAdmin");
      await ends("carol", "removeApiPayer", [PAYER], "ok");
      await ends("carol", "acceptAdmin", [], "NotPendingAdmin"); // only once
    },
    "a later proposal replaces the first": async ({ world, ends }) => {
      await ends("admin", "proposeAdmin", [world.cast.carol.address], "ok");
      await ends("admin", "proposeAdmin", [world.cast.bob.address], "ok");
      await ends("admin", "proposeAdmin", [world.cast.bob.address], "silent");
      await ends("carol", "acceptAdmin", [], "NotPendingAdmin");
    },
    "zero: ZeroAddress": ({ ends }) => ends("admin", "proposeAdmin", [ANY_PKP], "ZeroAddress"),
    "no payer can change the admin or payers": async ({ world, ends }) => {
      for (const name of ["proposeAdmin", "addApiPayer", "removeApiPayer", "setAdminApiPayer"])
        await ends("payer", name, [world.cast.payer.address], "NotAdmin");
    },
  },
});
