import { ALICE_ID, ALICE_KEY } from "../support/stages";
import { number } from "../support/world";
import { describeFunction } from "../support/tree";

describeFunction("updateUsageApiKeyMetadata", {
  "other strings: changes them": ({ ends }) =>
    ends("payer", "updateUsageApiKeyMetadata", [ALICE_ID, ALICE_KEY, "new", "text"], "ok"),
  "the same strings: no effect": ({ ends }) =>
    ends("payer", "updateUsageApiKeyMetadata", [ALICE_ID, ALICE_KEY, "key", ""], "silent"),
  "a key never set, of another account, or removed: UnknownUsageKey": async ({ world, bobId, ends }) => {
    await ends("payer", "updateUsageApiKeyMetadata", [ALICE_ID, number("none"), "", ""], "UnknownUsageKey");
    await ends("bob", "updateUsageApiKeyMetadata", [bobId, ALICE_KEY, "", ""], "UnknownUsageKey");
    await world.do(world.cast.payer, "removeUsageApiKey", ALICE_ID, ALICE_KEY);
    await ends("payer", "updateUsageApiKeyMetadata", [ALICE_ID, ALICE_KEY, "", ""], "UnknownUsageKey");
  },
});
