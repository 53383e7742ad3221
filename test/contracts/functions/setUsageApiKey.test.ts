import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, executeKey, fullKey } from "../support/stages";
import { number } from "../support/world";
import { describeFunction } from "../support/tree";
import { must } from "../../support/must";

const KEY = number("new key");

describeFunction("setUsageApiKey", {
  "a new key": {
    "without scopes: both events, empty lists": ({ ends }) =>
      ends("payer", "setUsageApiKey", executeKey(ALICE_ID, KEY, []), "ok"),
    "with scopes: holds them": async ({ world, ends }) => {
      await ends("payer", "setUsageApiKey", fullKey(ALICE_ID, KEY, [1n]), "ok");
      const key = await world.manager.getUsageApiKey(KEY);
      expect([key.createGroups, key.deleteGroups, key.createPKPs]).to.deep.equal([true, true, true]);
      for (const list of [key.manageIPFSIdsInGroups, key.addPkpToGroups, key.removePkpFromGroups, key.executeInGroups])
        expect([...list]).to.deep.equal([1n]);
    },
    "each list is stored in its own field": async ({ world, ends }) => {
      for (let i = 0; i < 4; i++) await world.do(world.cast.payer, "addGroup", ALICE_ID, "", "", [], []);
      await ends(
        "payer",
        "setUsageApiKey",
        [ALICE_ID, KEY, 0n, 0n, "", "", false, true, false, [2n], [3n], [4n], [5n]],
        "ok",
      );
      const held = [
        [4, 2],
        [5, 3],
        [6, 4],
        [0, 5],
      ]; // scope, group
      for (const [scope, groupId] of held)
        for (const other of [2, 3, 4, 5])
          expect(await world.manager.hasScope(KEY, must(scope), other)).to.equal(other === groupId);
      for (const [scope, holds] of [
        [1, false],
        [2, false],
        [3, true],
      ] as const)
        expect(await world.manager.hasScope(KEY, scope, 0)).to.equal(holds);
    },
    "id zero: ZeroId": ({ ends }) => ends("payer", "setUsageApiKey", executeKey(ALICE_ID, 0n, []), "ZeroId"),
    "a group above the last one, in any list: UnknownGroup": async ({ ends }) => {
      for (let list = 0; list < 4; list++) {
        const lists = [0, 1, 2, 3].map((i) => (i === list ? [1n, 2n] : []));
        await ends(
          "payer",
          "setUsageApiKey",
          [ALICE_ID, KEY, 0n, 0n, "", "", false, false, false, ...lists],
          "UnknownGroup",
        );
      }
    },
    "a string that is too long and a group above the last one: StringTooLong": ({ ends }) =>
      ends(
        "payer",
        "setUsageApiKey",
        executeKey(ALICE_ID, KEY, [9n]).map((value) => (value === "key" ? "x".repeat(129) : value)),
        "StringTooLong",
      ),
    "a removed group: accepted, without effect": async ({ world, ends }) => {
      await world.do(world.cast.payer, "removeGroup", ALICE_ID, 1n);
      await ends("payer", "setUsageApiKey", executeKey(ALICE_ID, KEY, [1n]), "ok");
      expect(await world.manager.hasScope(KEY, 0, 1)).to.equal(false);
    },
  },
  "a key that is set": {
    "the same values, lists in another order and with duplicates: no effect": async ({ world, ends }) => {
      await world.do(world.cast.payer, "addGroup", ALICE_ID, "", "", [], []);
      await ends("payer", "setUsageApiKey", fullKey(ALICE_ID, ALICE_KEY, [1n, 2n, 0n]), "ok");
      await ends("payer", "setUsageApiKey", fullKey(ALICE_ID, ALICE_KEY, [0n, 2n, 1n, 2n]), "silent");
    },
    "other values: UsageApiKeySet alone": async ({ ends }) => {
      for (const [expiration, balance, name] of [
        [5n, 0n, "key"],
        [5n, 7n, "key"],
        [5n, 7n, "other"],
      ] as const) {
        await ends(
          "payer",
          "setUsageApiKey",
          [ALICE_ID, ALICE_KEY, expiration, balance, name, "", false, false, false, [], [], [], [1n]],
          "ok",
        );
      }
    },
    "other lists: UsageApiKeyScopesSet alone, the old ones fully replaced": async ({ world, ends }) => {
      await ends("payer", "setUsageApiKey", executeKey(ALICE_ID, ALICE_KEY, []), "ok");
      expect(await world.manager.hasScope(ALICE_KEY, 0, 1)).to.equal(false);
    },
  },
  "a key that was removed: KeyRevoked, with the same arguments or others": async ({ ends }) => {
    await ends("payer", "removeUsageApiKey", [ALICE_ID, ALICE_KEY], "ok");
    await ends("payer", "setUsageApiKey", executeKey(ALICE_ID, ALICE_KEY, [1n]), "KeyRevoked");
    await ends("payer", "setUsageApiKey", fullKey(ALICE_ID, ALICE_KEY, []), "KeyRevoked");
  },
  "a key that was revoked with all others: KeyRevoked": async ({ ends }) => {
    await ends("payer", "revokeAllUsageApiKeys", [ALICE_ID], "ok");
    await ends("payer", "setUsageApiKey", executeKey(ALICE_ID, ALICE_KEY, [1n]), "KeyRevoked");
  },
  "the id of an account, its own or another's: KeyIdTaken": async ({ bobId, ends }) => {
    for (const id of [ALICE_ID, bobId])
      await ends("payer", "setUsageApiKey", executeKey(ALICE_ID, id, []), "KeyIdTaken");
  },
  "another account's key: KeyIdTaken": ({ bobId, ends }) =>
    ends("bob", "setUsageApiKey", executeKey(bobId, ALICE_KEY, []), "KeyIdTaken"),
});
