import { expect } from "chai";
import { ALICE_ID, ALICE_PKP } from "../support/stages";
import { ANY_PKP } from "../support/state";
import { pathFor, walletOf } from "../support/world";
import { describeFunction } from "../support/tree";

const NEW = walletOf("new");
const path = (kind?: bigint) => pathFor(ALICE_ID, "new", kind);
const args = (wallet: string, derivationPath: bigint, name = "", description = "") => [
  ALICE_ID,
  wallet,
  derivationPath,
  name,
  description,
];

describeFunction("registerWalletDerivation", {
  "a new wallet": {
    "of kind 1: the account's next PKP": async ({ world, ends }) => {
      await ends("payer", "registerWalletDerivation", args(NEW, path(), "n", "d"), "ok");
      expect(await world.manager.pkpByNumber(ALICE_ID, 2)).to.equal(NEW);
    },
    "of kind 2: recorded, not listed": async ({ world, ends }) => {
      await ends("payer", "registerWalletDerivation", args(NEW, path(2n)), "ok");
      expect(await world.manager.getWalletDerivation(ALICE_ID, NEW)).to.equal(path(2n));
      expect((await world.manager.listPkps(ALICE_ID, 0, 9)).total).to.equal(1n);
    },
    "of another kind: UnknownPathKind": ({ ends }) =>
      ends("payer", "registerWalletDerivation", args(NEW, path(3n)), "UnknownPathKind"),
    "path zero: UnknownPathKind": ({ ends }) =>
      ends("payer", "registerWalletDerivation", args(NEW, 0n), "UnknownPathKind"),
    "a path for another account: ForeignDerivationPath": ({ bobId, ends }) =>
      ends("payer", "registerWalletDerivation", args(NEW, pathFor(bobId, "new")), "ForeignDerivationPath"),
    "a path whose tail is the account's in all bytes but one: ForeignDerivationPath": async ({ ends }) => {
      for (let byte = 0n; byte < 16n; byte++)
        await ends(
          "payer",
          "registerWalletDerivation",
          args(NEW, path() ^ (1n << (8n * byte))),
          "ForeignDerivationPath",
        );
    },
    "address zero: ZeroAddress": ({ ends }) =>
      ends("payer", "registerWalletDerivation", args(ANY_PKP, path()), "ZeroAddress"),
  },
  "a registered wallet": {
    "same account, path and strings: no effect": ({ ends }) =>
      ends("payer", "registerWalletDerivation", args(ALICE_PKP, pathFor(ALICE_ID, "pkp")), "silent"),
    "other strings: PkpTaken": ({ ends }) =>
      ends("payer", "registerWalletDerivation", args(ALICE_PKP, pathFor(ALICE_ID, "pkp"), "other"), "PkpTaken"),
    "other strings of the same length, in any of their words: PkpTaken": async ({ ends }) => {
      const long = "d".repeat(100);
      await ends("payer", "registerWalletDerivation", args(NEW, path(), "n", long), "ok");
      await ends("payer", "registerWalletDerivation", args(NEW, path(), "n", long), "silent");
      for (const at of [0, 30, 31, 62, 63, 99]) {
        const other = `${long.slice(0, at)}e${long.slice(at + 1)}`;
        await ends("payer", "registerWalletDerivation", args(NEW, path(), "n", other), "PkpTaken");
      }
      await ends("payer", "registerWalletDerivation", args(NEW, path(), "nd", long.slice(1)), "PkpTaken");
    },
    "other path or kind: PkpTaken": async ({ ends }) => {
      await ends("payer", "registerWalletDerivation", args(ALICE_PKP, path()), "PkpTaken");
      await ends("payer", "registerWalletDerivation", args(ALICE_PKP, pathFor(ALICE_ID, "pkp", 2n)), "PkpTaken");
    },
    "the wallet of a usage key again, whatever its strings: no effect": async ({ ends }) => {
      await ends("payer", "registerWalletDerivation", args(NEW, path(2n), "a"), "ok");
      await ends("payer", "registerWalletDerivation", args(NEW, path(2n), "b"), "silent");
    },
    "by another account: registered there too, each with its own path": async ({ world, bobId, ends }) => {
      await ends("bob", "registerWalletDerivation", [bobId, ALICE_PKP, pathFor(bobId, "x"), "", ""], "ok");
      expect(await world.manager.getWalletDerivation(ALICE_ID, ALICE_PKP)).to.equal(pathFor(ALICE_ID, "pkp"));
      expect(await world.manager.getWalletDerivation(bobId, ALICE_PKP)).to.equal(pathFor(bobId, "x"));
    },
  },
});
