import { ALICE_ID } from "../support/stages";
import { cid } from "../support/world";
import { describeFunction } from "../support/tree";

const args = (action: bigint, groupId: bigint, name: string) => [ALICE_ID, action, groupId, name, ""];

describeFunction("updateActionMetadata", {
  "other strings, with group 0 or any existing group: changes them": async ({ world, ends }) => {
    await world.do(world.cast.payer, "addGroup", ALICE_ID, "", "", [], []);
    for (const groupId of [0n, 1n, 2n])
      await ends("payer", "updateActionMetadata", args(cid(1), groupId, `in ${groupId}`), "ok");
  },
  "the same strings: no effect": ({ ends }) => ends("payer", "updateActionMetadata", args(cid(1), 0n, ""), "silent"),
  "no such group: UnknownGroup": ({ ends }) =>
    ends("payer", "updateActionMetadata", args(cid(1), 2n, "x"), "UnknownGroup"),
  "no such action, or 0: UnknownAction": async ({ ends }) => {
    for (const action of [cid(2), 0n])
      await ends("payer", "updateActionMetadata", args(action, 0n, "x"), "UnknownAction");
  },
});
