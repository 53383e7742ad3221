import { ALICE_ID } from "../support/stages";
import { describeFunction } from "../support/tree";

describeFunction("updateAccountMetadata", {
  "other strings: changes them": ({ ends }) =>
    ends("payer", "updateAccountMetadata", [ALICE_ID, "other", "text"], "ok"),
  "the same strings: no effect": ({ ends }) =>
    ends("payer", "updateAccountMetadata", [ALICE_ID, "alice", ""], "silent"),
  "the same bytes, split otherwise: changes them": ({ ends }) =>
    ends("payer", "updateAccountMetadata", [ALICE_ID, "ali", "ce"], "ok"),
});
