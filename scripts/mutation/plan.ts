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
  "Budgets",
  "libraries/GroupSets",
  "libraries/UsageKeys",
  "libraries/Scopes",
  "libraries/Addresses",
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
    from: "word == 0 ? column.first : column.more[_key(index, word)]",
    to: "(word == 0 ? column.first : column.more[word])",
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
  {
    file: "contracts/AccountManager.sol",
    from: "managed ? !_isApiPayer(msg.sender) : caller != adminWalletAddress",
    to: "(managed && !_isApiPayer(msg.sender))",
    near: "newAccount",
  },
  { file: "contracts/AccountManager.sol", from: "apiKeyHash != expected", to: "false", near: "newAccount" },
  {
    file: "contracts/AccountManager.sol",
    from: "_isManaged(_accounts[actor])",
    to: "_accounts[actor].owner != address(0)",
    near: "matrix",
  },
  {
    file: "contracts/AccountManager.sol",
    from: "_isOwner(id) && newAdminWalletAddress != _msgSender()",
    to: "_isOwner(id)",
    near: "convertToChainSecuredAccount",
  },
  {
    file: "contracts/AccountManager.sol",
    from: "_isOwner(id) && newAdminWalletAddress != _msgSender()",
    to: "newAdminWalletAddress != _msgSender()",
    near: "convertToChainSecuredAccount",
  },
  {
    file: "contracts/AccountManager.sol",
    from: "_isOwner(id) && newAdminWalletAddress != _msgSender()",
    to: "false",
    near: "convertToChainSecuredAccount",
  },
  {
    file: "contracts/AccountManager.sol",
    from: "_isDelegate(owner)",
    to: "false",
    near: "transferOwnership",
  },
  {
    file: "contracts/Delegating.sol",
    from: "account == address(uint160(uint256(behind)))",
    to: "false",
    near: "transferOwnership",
  },
  {
    file: "contracts/Delegating.sol",
    from: "account == _delegate",
    to: "false",
    near: "transferOwnership",
  },
  {
    file: "contracts/AccountManager.sol",
    from: "_atMost(uint256(account.epoch) + 1, type(uint16).max)",
    to: "(uint256(account.epoch) + 1)",
    near: "boundaries",
  },
  {
    file: "contracts/libraries/GroupSets.sol",
    from: "(index << GROUPS_PER_WORD) | word",
    to: "index | word",
    near: "boundaries",
  },
  {
    file: "contracts/libraries/GroupSets.sol",
    from: "register.lastId / GROUPS_PER_WORD + 1",
    to: "register.lastId / (GROUPS_PER_WORD + 1) + 1",
    near: "boundaries",
  },
  {
    file: "contracts/AccountDecisions.sol",
    from: "(verdict.byName)",
    to: "(verdict.allowed)",
    near: "boundaries",
  },
  {
    file: "contracts/libraries/Rows.sol",
    from: "uint112(1 << _page(index / INDEXES_PER_WORD))",
    to: "uint112(1 << (index / INDEXES_PER_WORD))",
    near: "boundaries",
  },
  {
    file: "contracts/Batches.sol",
    from: "gasleft() < GAS_BEFORE_CALL",
    to: "gasleft() < CALL_GAS",
    near: "tryMulticall",
  },
  { file: "contracts/Budgets.sol", from: "used <= limit", to: "true", near: "budgets" },
  { file: "contracts/Budgets.sol", from: "uint256(_used[counter]) + amount", to: "uint256(amount)", near: "budgets" },
  { file: "contracts/Budgets.sol", from: "uint128(used)", to: "amount", near: "budgets" },
  {
    file: "contracts/Budgets.sol",
    from: "block.timestamp < _confirmedUntil[msg.sender]",
    to: "_confirmedUntil[msg.sender] != 0",
    near: "budgets",
  },
  {
    file: "contracts/Budgets.sol",
    from: "abi.encode(account, action, name, window, index)",
    to: "abi.encode(action, name, window, index)",
    near: "budgets",
  },
  {
    file: "contracts/Budgets.sol",
    from: "window == Window.Hour ? 1 hours : 1 days",
    to: "window == Window.Hour ? 1 days : 1 hours",
    near: "budgets",
  },
  {
    file: "contracts/Budgets.sol",
    from: "!IApiPayers(accountManager).isApiPayer(msg.sender)",
    to: "false",
    near: "budgets",
  },
  {
    file: "contracts/libraries/Texts.sol",
    from: "stored.words[i].value != words[i]",
    to: "stored.words[0].value != words[0]",
    near: "registerWalletDerivation",
  },
] as const;

/** `file`, place and text of the mutant as in the report → why no test can detect it. */
export const EXPLAINED: Readonly<Record<string, string>> = {
  "contracts/AccountDecisions.sol AccountDecisions._judge: pkp != address(0) → true":
    "Costs gas only: without a PKP all groups count as listing it already.",
  "contracts/AccountDecisions.sol AccountDecisions._judge: byName & withPkp == 0 → true":
    "Costs gas only: where a group lists both by name, reading the wildcards too gives the same verdict.",
  ["contracts/AccountManager.sol AccountManager.changeGroupMembers: " +
  "_authorizeChange(apiKeyHash, groupId, addActions, removeActions, addPkps, removePkps) → " +
  "_authorizeChange(apiKeyHash, groupId, removeActions, addActions, addPkps, removePkps)"]:
    "Changes nothing: adding and removing actions need the same scope.",
  "contracts/AccountManager.sol AccountManager.newAccount: managed && !_payers.managedAccountExists → managed":
    "Costs gas only: the flag that is set already is set again.",
  "contracts/AccountRules.sol AccountRules._holds: scope == Scope.OwnerOnly → false":
    "Changes nothing: no list is ever stored under OwnerOnly, so that it is empty below.",
  "contracts/GroupMembers.sol GroupMembers._dropActionsBut: !Rows.mayFill(group.actionPages, page) → false":
    "Costs gas only: a page that is not marked is empty, and nothing is dropped from it.",
  "contracts/GroupMembers.sol GroupMembers._dropActionsBut: continue; → (nothing)":
    "Costs gas only: a page that is not marked is empty, and nothing is dropped from it.",
  "contracts/libraries/UsageKeys.sol UsageKeys.setLists: !changed → false":
    "Costs gas only: the same lists are stored again under a new generation, and no event tells of a change.",
  "contracts/libraries/Bits.sol Bits.page: offset >= inWord → offset > inWord":
    "Costs gas only: the loop below passes over the same numbers one by one.",
  "contracts/libraries/Rows.sol Rows.mayFill: (pages >> _page(word)) & 1 → (pages >> _page(word)) | 1":
    "Costs gas only: pages that are not marked are empty, and are read for nothing.",
  "contracts/libraries/Rows.sol Rows._page: LAST_PAGE → (LAST_PAGE + 1)":
    "Changes nothing: word LAST_PAGE has the page LAST_PAGE on either branch.",
};
