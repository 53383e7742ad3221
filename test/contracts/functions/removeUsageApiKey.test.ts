import { expect } from "chai";
import { ALICE_ID, ALICE_KEY, executeKey } from "../support/stages";
import { number } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("removeUsageApiKey", {
  "a set key: no longer valid, its id stays with the account": async ({ world, ends }) => {
    await ends("payer", "removeUsageApiKey", [ALICE_ID, ALICE_KEY], "ok");
    const { accountId, live } = await world.manager.getKey(ALICE_KEY);
    expect([accountId, live]).to.deep.equal([ALICE_ID, false]);
  },
  "first, middle and last of several: the list keeps the others": async ({ world, ends }) => {
    const keys = [1, 2, 3, 4].map((i) => number(`key ${i}`));
    for (const key of keys) await world.do(world.cast.payer, "setUsageApiKey", ...executeKey(ALICE_ID, key, [1n]));
    const listed = async () => (await world.manager.listUsageApiKeys(ALICE_ID, 0, 10)).items.map((item) => item.id);
    await ends("payer", "removeUsageApiKey", [ALICE_ID, ALICE_KEY], "ok");
    expect(await listed()).to.deep.equal([keys[3], keys[0], keys[1], keys[2]]);
    await ends("payer", "removeUsageApiKey", [ALICE_ID, keys[0]], "ok");
    await ends("payer", "removeUsageApiKey", [ALICE_ID, keys[1]], "ok");
    expect(await listed()).to.deep.equal([keys[3], keys[2]]);
    await ends("payer", "removeUsageApiKey", [ALICE_ID, keys[3]], "ok");
    await ends("payer", "removeUsageApiKey", [ALICE_ID, keys[2]], "ok");
    expect(await listed()).to.deep.equal([]);
  },
  "a key never set, of another account, or removed: UnknownUsageKey": async ({ world, bobId, ends }) => {
    await ends("payer", "removeUsageApiKey", [ALICE_ID, number("none")], "UnknownUsageKey");
    await ends("bob", "removeUsageApiKey", [bobId, ALICE_KEY], "UnknownUsageKey");
    await world.do(world.cast.payer, "removeUsageApiKey", ALICE_ID, ALICE_KEY);
    await ends("payer", "removeUsageApiKey", [ALICE_ID, ALICE_KEY], "UnknownUsageKey");
  },
});
