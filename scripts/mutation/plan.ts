/** The files to mutate, the manual mutants, and why survivors cannot be detected. */

/** Writes and decisions, and the libraries of both. */
export const FILES = [
  "AccountManager",
  "AccountDecisions",
  "AccountRules",
  "GroupMembers",
  "Batches",
  "ApiPayers",
  "TwoStepAdmin",
  "libraries/GroupSets",
  "libraries/UsageKeys",
  "libraries/Scopes",
  "libraries/Labels",
  "libraries/Bits",
  "libraries/Rows",
  "libraries/Texts",
].map((name) => `contracts/${name}.sol`);

/**
 * Faults that no operator generates, also in lists. Each text occurs once in its file; the tests of the file `near` run
 * first.
 */
export const BY_HAND = [
  {
    file: "contracts/libraries/GroupSets.sol",
    from: "column.more[_key(index, word)]",
    to: "column.more[word]",
    near: "boundaries",
  },
  {
    file: "contracts/libraries/Rows.sol",
    from: "mayFill(pages, i)",
    to: "(i == 0 && mayFill(pages, i))",
    near: "boundaries",
  },
  {
    file: "contracts/AccountLists.sol",
    from: "group.pkpRow.load(group.pkpPages, account.lastPkp)",
    to: "group.pkpRow.load(group.pkpPages & 1, account.lastPkp)",
    near: "boundaries",
  },
  {
    file: "contracts/AccountLists.sol",
    from: "_usageKeys[key].head.expiration",
    to: "_usageKeys[key].head.balance",
    near: "views",
  },
  {
    file: "contracts/AccountLists.sol",
    from: "_usageKeys[key].head.balance",
    to: "_usageKeys[key].head.expiration",
    near: "views",
  },
  {
    file: "contracts/AccountManager.sol",
    from: "_isOwner(apiKeyHash) || (_isManaged(_accounts[apiKeyHash]) && _isApiPayer(msg.sender))",
    to: "false",
    near: "views",
  },
  { file: "contracts/AccountDecisions.sol", from: "block.number", to: "0", near: "views" },
  { file: "contracts/AccountDecisions.sol", from: "block.timestamp", to: "0", near: "views" },
  {
    file: "contracts/AccountManager.sol",
    from: "uint128(derivationPath) != uint128(id)",
    to: "uint64(derivationPath) != uint64(id)",
    near: "registerWalletDerivation",
  },
] as const;

/** `file`, place and text of the mutant as in the report → why no test can detect it. */
export const EXPLAINED: Readonly<Record<string, string>> = {
  "contracts/AccountDecisions.sol AccountDecisions._judge: byName & withPkp == 0 → true":
    "Costs gas only: where a group lists both by name, reading the wildcards too gives the same verdict.",
  "contracts/GroupMembers.sol GroupMembers._dropActionsBut: continue; → (nothing)":
    "Costs gas only: a page that is not marked is empty, and nothing is dropped from it.",
  "contracts/libraries/Rows.sol Rows._page: LAST_PAGE → (LAST_PAGE + 1)":
    "Changes nothing: word LAST_PAGE has the page LAST_PAGE on either branch.",
};
