import { ALICE_ID } from "../support/stages";
import { describeFunction } from "../support/tree";

describeFunction("updateGroupMetadata", {
  "other strings: changes them": ({ ends }) =>
    ends("payer", "updateGroupMetadata", [ALICE_ID, 1n, "other", "text"], "ok"),
  "the same strings: no effect": ({ ends }) =>
    ends("payer", "updateGroupMetadata", [ALICE_ID, 1n, "group", ""], "silent"),
  "group 0: GroupZero": ({ ends }) => ends("payer", "updateGroupMetadata", [ALICE_ID, 0n, "", ""], "GroupZero"),
  "no such group: UnknownGroup": ({ ends }) =>
    ends("payer", "updateGroupMetadata", [ALICE_ID, 1n << 64n, "", ""], "UnknownGroup"),
});
