// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Scope, DenialReason, AccountInfo, KeyInfo, UsageApiKeyInfo, GroupInfo, ActionInfo, PkpInfo} from "../types/AccountTypes.sol";
import {ITwoStepAdmin} from "./ITwoStepAdmin.sol";

/// @title Who may use which key through which code
/// @notice Accounts own PKPs, groups, actions and usage keys. A group binds PKPs to actions; a key's scopes say in which groups it may
/// act. The executor asks `explainExecution` before every run.
///
/// Ids. An account id (`apiKeyHash`) is the keccak256 of the account key's text (API mode) or of the packed address of the creating
/// wallet (ChainSecured mode). A key id is the keccak256 of the key's bytes. An action id is the keccak256 of the CID text. A PKP id is its
/// address. Group ids count from 1 in each account and are never used again.
///
/// Zero. In a key's list of groups, 0 is "every existing group of the account, later ones included". INSIDE A GROUP, ACTION 0 IS "ANY
/// ACTION" AND PKP address(0) IS "ANY PKP OF THIS ACCOUNT": whoever may run in such a group may run any code with its PKPs, or its
/// code with any PKP of the account. Only the owner may add or remove these two. Nowhere else is zero an id.
///
/// Who may write. Every function that takes an account or key id first passes one door:
///  - the owner (`adminWalletAddress`) with the account id: everything on its account;
///  - an API payer with the id of a managed account: what the owner may;
///  - an API payer with the id of a live usage key of a managed account: what the key's scopes allow;
///  - an API payer on an unmanaged account: `AccountChainSecured`;
///  - anybody else: `NotAuthorized`.
/// An id means the account of that id if there is one, else the usage key. "Owner only" below means that a usage key is refused with
/// `MissingScope(OwnerOnly, …)` before anything else is looked at; "scope X" that it needs that scope. The door's errors come first
/// in every function: `NotAuthorized`, `UnknownAccount`, `AccountChainSecured`, `UnknownUsageKey` (removed), `KeyExpired`, `MissingScope`.
///
/// Adding what is there and setting equal values succeeds and emits nothing. Removing what is not there reverts.
/// Names are at most 128 bytes, descriptions at most 1,024 (`StringTooLong`).
///
/// Several calls in one transaction: the contract also has OpenZeppelin's `multicall(bytes[] data)`; each inner call passes the door itself.
///
/// Events carry as their last field the actor: the account id or usage key id that the door accepted.
interface IAccountManager is ITwoStepAdmin {
    // ------------------------------------------------------------------------------------------------------------ events

    /// @notice An account was made. `admin` is its owner.
    event AccountCreated(uint256 indexed id, address indexed admin, bool managed, string name, string description, uint256 actor);
    /// @notice An account has another name or description.
    event AccountUpdated(uint256 indexed id, string name, string description, uint256 actor);
    /// @notice A managed account became ChainSecured: `newAdmin` owns it and no API payer can write to it any more.
    event AccountConvertedToChainSecured(uint256 indexed id, address oldAdmin, address indexed newAdmin, uint256 actor);
    /// @notice An account has another owner. If it was managed it is ChainSecured from here on.
    event AccountOwnershipTransferred(uint256 indexed id, address oldOwner, address indexed newOwner, uint256 actor);

    /// @notice A usage key was set, or has other values than before. A key that was not set before starts with empty lists.
    /// @param flags bit 0 createGroups, bit 1 deleteGroups, bit 2 createPKPs
    event UsageApiKeySet(
        uint256 indexed id,
        uint256 indexed keyId,
        uint256 expiration,
        uint256 balance,
        string name,
        string description,
        uint8 flags,
        uint256 actor
    );
    /// @notice The lists of groups of a usage key, replaced as a whole. Order and duplicates are the caller's and mean nothing.
    event UsageApiKeyScopesSet(
        uint256 indexed id,
        uint256 indexed keyId,
        uint256[] manageIPFSIdsInGroups,
        uint256[] addPkpToGroups,
        uint256[] removePkpFromGroups,
        uint256[] executeInGroups,
        uint256 actor
    );
    /// @notice A usage key has another name or description.
    event UsageApiKeyUpdated(uint256 indexed id, uint256 indexed keyId, string name, string description, uint256 actor);
    /// @notice A usage key can do nothing any more. Its id stays with the account.
    event UsageApiKeyRemoved(uint256 indexed id, uint256 indexed keyId, uint256 actor);

    /// @notice A group was added; its members follow in events of their own.
    event GroupAdded(uint256 indexed id, uint256 indexed groupId, string name, string description, uint256 actor);
    /// @notice A group has another name or description.
    event GroupUpdated(uint256 indexed id, uint256 indexed groupId, string name, string description, uint256 actor);
    /// @notice A group is gone with its members; its id is never used again.
    event GroupRemoved(uint256 indexed id, uint256 indexed groupId, uint256 actor);

    /// @notice A group lists an action. An action the account did not have becomes one with empty strings. 0 = any action.
    event ActionAddedToGroup(uint256 indexed id, uint256 indexed groupId, uint256 indexed action, uint256 actor);
    /// @notice A group no longer lists an action. The account keeps the action.
    event ActionRemovedFromGroup(uint256 indexed id, uint256 indexed groupId, uint256 indexed action, uint256 actor);
    /// @notice A group lists a PKP. address(0) = any PKP of the account.
    event PkpAddedToGroup(uint256 indexed id, uint256 indexed groupId, address indexed pkpId, uint256 actor);
    /// @notice A group no longer lists a PKP.
    event PkpRemovedFromGroup(uint256 indexed id, uint256 indexed groupId, address indexed pkpId, uint256 actor);

    /// @notice The account has a new action with these strings.
    event ActionAdded(uint256 indexed id, uint256 indexed action, string name, string description, uint256 actor);
    /// @notice An action of the account has another name or description.
    event ActionUpdated(uint256 indexed id, uint256 indexed action, string name, string description, uint256 actor);
    /// @notice An action is gone from the account and from each of its groups.
    event ActionRemoved(uint256 indexed id, uint256 indexed action, uint256 actor);

    /// @notice A wallet was registered to an account. If the first byte of the path is 1 it is the account's next PKP; if it is 2 it is
    /// the wallet of a usage key, which is recorded and not listed.
    event WalletDerivationRegistered(
        uint256 indexed id,
        address indexed pkpId,
        uint256 derivationPath,
        string name,
        string description,
        uint256 actor
    );
    /// @notice A PKP has another name or description.
    event PkpUpdated(uint256 indexed id, address indexed pkpId, string name, string description, uint256 actor);

    /// @notice An address may act as an API payer.
    event ApiPayerAdded(address indexed payer);
    /// @notice An address may no longer act as an API payer.
    event ApiPayerRemoved(address indexed payer);
    /// @notice The address that funds the API payers was set.
    event AdminApiPayerSet(address indexed payer);

    // ------------------------------------------------------------------------------------------------------------ errors

    /// @notice The caller is neither the owner of the account nor an API payer.
    error NotAuthorized(address caller);
    /// @notice The usage key has not the scope this needs (for the group, where the scope is per group).
    error MissingScope(Scope scope, uint256 groupId);
    /// @notice The account is not managed (any more): only its owner may write, and its account key is no key.
    error AccountChainSecured(uint256 id);
    /// @notice There is no account (and no usage key) of this id.
    error UnknownAccount(uint256 id);
    /// @notice The account has no usage key of this id set.
    error UnknownUsageKey(uint256 key);
    /// @notice The usage key is at or after its expiration.
    error KeyExpired(uint256 key);
    /// @notice The account has no group of this id (any more).
    error UnknownGroup(uint256 groupId);
    /// @notice The account has no such action.
    error UnknownAction(uint256 action);
    /// @notice The account has no such PKP.
    error UnknownPkp(address pkpId);
    /// @notice The account has no PKP of this number.
    error UnknownPkpNumber(uint256 number);
    /// @notice The group does not list this member (an action id, or a PKP's address as a number).
    error NotInGroup(uint256 groupId, uint256 member);
    /// @notice There is an account of this id.
    error AccountIdTaken(uint256 id);
    /// @notice A ChainSecured account of the caller can only have the id `expected`.
    error ForeignAccountId(uint256 id, uint256 expected);
    /// @notice The id belongs to another account's usage key, or, for a new managed account, was ever a usage key's.
    error KeyIdTaken(uint256 key);
    /// @notice The wallet is registered already: to another account, or with another path or other strings.
    error PkpTaken(address pkpId);
    /// @notice The last 16 bytes of the path are not those of the account id.
    error ForeignDerivationPath(uint256 derivationPath, uint256 accountId);
    /// @notice The first byte of the path is neither 1 (PKP) nor 2 (usage key).
    error UnknownPathKind(uint256 kind);
    /// @notice A string is longer than `max` bytes.
    error StringTooLong(uint256 length, uint256 max);
    /// @notice A number is larger than the contract can store.
    error ValueTooLarge(uint256 value, uint256 max);
    /// @notice An account id or key id must not be zero.
    error ZeroId();
    /// @notice Group 0 is a word in lists of scopes ("every group"), never a group to act on.
    error GroupZero();
    /// @notice Action 0 is a word inside groups ("any action"), never an action of an account.
    error ActionZero();
    /// @notice The new owner is the present owner.
    error SameOwner(address owner);
    /// @notice This contract cannot own an account: nobody could ever write to it.
    error OwnerIsThisContract();
    /// @notice One call both adds and removes this member.
    error MemberInBothLists(uint256 member);
    /// @notice A page may hold at most `max` items.
    error PageTooLarge(uint256 limit, uint256 max);
    /// @notice The address is no API payer.
    error UnknownApiPayer(address payer);

    // ---------------------------------------------------------------------------------------------------------- accounts

    /// @notice Makes an account.
    /// @dev Emits {AccountCreated}.
    ///
    /// Notes:
    ///  - Warning: an API payer can take an id before its wallet does (an account managed by the payer under the packed id of a
    ///    stranger). A wallet that finds its id taken uses another wallet and hands the account over with `transferOwnership`.
    ///  - A usage key of the same id does not stand in the way of an unmanaged account, and has no effect once the account exists.
    ///
    /// Requirements:
    ///  - managed: the caller is an API payer; else: the caller is `adminWalletAddress` (`NotAuthorized`);
    ///  - unmanaged: the id is the caller's packed id (`ForeignAccountId`);
    ///  - the id is not zero (`ZeroId`); the owner is neither zero (`ZeroAddress`) nor this contract (`OwnerIsThisContract`);
    ///  - managed: the id was never a usage key's (`KeyIdTaken`);
    ///  - there is no such account (`AccountIdTaken`);
    ///  - the strings are not too long (`StringTooLong`).
    /// @param apiKeyHash The account id: keccak256 of the text of the account key, or `keccak256(abi.encodePacked(adminWalletAddress))`.
    /// @param managed True for API mode, false for ChainSecured mode.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    /// @param adminWalletAddress The owner.
    function newAccount(
        uint256 apiKeyHash,
        bool managed,
        string calldata name,
        string calldata description,
        address adminWalletAddress
    ) external;

    /// @notice Makes a ChainSecured account of the caller: `newAccount` with the caller's packed id, unmanaged, owned by the caller.
    /// @dev Emits {AccountCreated}.
    ///
    /// Requirements: as for an unmanaged `newAccount`.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    function newChainSecuredAccount(string calldata name, string calldata description) external;

    /// @notice Turns a managed account into a ChainSecured one. There is no way back.
    /// @dev Emits {AccountConvertedToChainSecured}.
    ///
    /// Notes:
    ///  - Id, groups, PKPs, actions and usage keys stay. The account key is no key any more.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the account is managed (`AccountChainSecured`);
    ///  - the new owner is neither zero (`ZeroAddress`) nor this contract (`OwnerIsThisContract`).
    /// @param apiKeyHash The account id.
    /// @param newAdminWalletAddress The owner from now on; may be the present one.
    function convertToChainSecuredAccount(uint256 apiKeyHash, address newAdminWalletAddress) external;

    /// @notice Gives an account to another owner: a wallet, a multisig, a governance contract. A managed account becomes ChainSecured.
    /// @dev Emits {AccountOwnershipTransferred}.
    ///
    /// Notes:
    ///  - The rights of the old owner and of the API payers end at once. Usage keys stay: the new owner may want to revoke them.
    ///  - One step: an owner that cannot send transactions cannot be replaced by anybody.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the new owner is neither zero (`ZeroAddress`), nor this contract (`OwnerIsThisContract`), nor the present one (`SameOwner`).
    /// @param apiKeyHash The account id.
    /// @param newOwner The owner from now on.
    function transferOwnership(uint256 apiKeyHash, address newOwner) external;

    /// @notice Gives an account another name and description.
    /// @dev Emits {AccountUpdated}.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the strings are not too long (`StringTooLong`).
    /// @param apiKeyHash The account id.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    function updateAccountMetadata(uint256 apiKeyHash, string calldata name, string calldata description) external;

    // -------------------------------------------------------------------------------------------------------- usage keys

    /// @notice Sets a usage key: creates it, or replaces everything it had.
    /// @dev Emits {UsageApiKeySet} if the key is new or one of its values changed, {UsageApiKeyScopesSet} if it is new or one of its lists
    /// changed.
    ///
    /// Notes:
    ///  - A key id belongs to the first account that sets it, for ever, also after removal. Whoever sets a stranger's key id first (seen in
    ///    the mempool) gains nothing by it: only the holder of the key's bytes can use it. The owner then makes another key.
    ///  - An expiration in the past is accepted: the key is dead at once.
    ///  - Ids of removed groups are accepted in the lists and mean nothing. 0 means every existing group, later ones included.
    ///  - The price is per 224 group ids and list, not per group.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the key id is not zero (`ZeroId`);
    ///  - expiration below 2^40, balance below 2^64 (`ValueTooLarge`);
    ///  - the key id is no other account's (`KeyIdTaken`);
    ///  - the strings are not too long (`StringTooLong`);
    ///  - no listed id is above the account's last group id (`UnknownGroup`).
    /// @param accountApiKeyHash The account id.
    /// @param usageApiKeyHash The key id: keccak256 of the key's bytes.
    /// @param expiration Unix seconds; the key is live before it. 0 = never expires.
    /// @param balance Spending cap in US cents over the key's life, enforced by the relayer. 0 = no cap.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    /// @param createGroups May add groups.
    /// @param deleteGroups May remove groups.
    /// @param createPKPs May register PKPs.
    /// @param manageIPFSIdsInGroups Groups to which it may add and from which it may remove actions.
    /// @param addPkpToGroups Groups to which it may add PKPs.
    /// @param removePkpFromGroups Groups from which it may remove PKPs.
    /// @param executeInGroups Groups in which it may execute.
    function setUsageApiKey(
        uint256 accountApiKeyHash,
        uint256 usageApiKeyHash,
        uint256 expiration,
        uint256 balance,
        string calldata name,
        string calldata description,
        bool createGroups,
        bool deleteGroups,
        bool createPKPs,
        uint256[] calldata manageIPFSIdsInGroups,
        uint256[] calldata addPkpToGroups,
        uint256[] calldata removePkpFromGroups,
        uint256[] calldata executeInGroups
    ) external;

    /// @notice Gives a usage key another name and description.
    /// @dev Emits {UsageApiKeyUpdated}.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the key is set on this account, live or expired (`UnknownUsageKey`);
    ///  - the strings are not too long (`StringTooLong`).
    /// @param accountApiKeyHash The account id.
    /// @param usageApiKeyHash The key id.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    function updateUsageApiKeyMetadata(
        uint256 accountApiKeyHash,
        uint256 usageApiKeyHash,
        string calldata name,
        string calldata description
    ) external;

    /// @notice Revokes a usage key at once. Set again later it starts from nothing.
    /// @dev Emits {UsageApiKeyRemoved}.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the key is set on this account, live or expired (`UnknownUsageKey`).
    /// @param accountApiKeyHash The account id.
    /// @param usageApiKeyHash The key id.
    function removeUsageApiKey(uint256 accountApiKeyHash, uint256 usageApiKeyHash) external;

    // -------------------------------------------------------------------------------------------------------------- PKPs

    /// @notice Registers a wallet whose key the executor derives: a PKP (path kind 1) or the wallet of a usage key (path kind 2).
    /// @dev Emits {WalletDerivationRegistered}.
    ///
    /// Notes:
    ///  - An address belongs to one account for ever. Registering a stranger's address gains nothing: the executor derives the address
    ///    again from the path before it uses a key.
    ///  - Registering the same wallet with the same path and strings again succeeds and does nothing. The strings of a usage key's wallet
    ///    are emitted and not stored.
    ///
    /// Requirements:
    ///  - scope CreatePkps;
    ///  - the address is not zero (`ZeroAddress`);
    ///  - the path is of a known kind (`UnknownPathKind`) and made for this account (`ForeignDerivationPath`);
    ///  - the strings are not too long (`StringTooLong`);
    ///  - the wallet is not registered otherwise (`PkpTaken`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param pkpId The wallet's address.
    /// @param derivationPath kind (1 byte) ‖ 15 random bytes ‖ the low 16 bytes of the account id.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    function registerWalletDerivation(
        uint256 apiKeyHash,
        address pkpId,
        uint256 derivationPath,
        string calldata name,
        string calldata description
    ) external;

    /// @notice Gives a PKP another name and description.
    /// @dev Emits {PkpUpdated}.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - it is a PKP of this account (`UnknownPkp`);
    ///  - the strings are not too long (`StringTooLong`).
    /// @param apiKeyHash The account id.
    /// @param pkpId The PKP's address.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    function updatePkpMetadata(uint256 apiKeyHash, address pkpId, string calldata name, string calldata description) external;

    // ------------------------------------------------------------------------------------------------------------ groups

    /// @notice Adds a group, with members if any are given.
    /// @dev Emits {GroupAdded}, then {ActionAddedToGroup} and {PkpAddedToGroup} for each member.
    ///
    /// Notes:
    ///  - A usage key may give members only if it could add them to any group: with the wildcard [0] of the matching list. Else a key
    ///    that may create groups and execute in all of them could run anything.
    ///
    /// Requirements:
    ///  - scope CreateGroups; with actions also ManageActions on 0, with PKPs also AddPkp on 0; action 0 and PKP zero: owner only;
    ///  - the strings are not too long (`StringTooLong`);
    ///  - the PKPs are this account's (`UnknownPkp`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    /// @param cidHashes Actions to list; 0 = any action.
    /// @param pkpIds PKPs to list; address(0) = any PKP of the account.
    /// @return groupId The new group's id.
    function addGroup(
        uint256 apiKeyHash,
        string calldata name,
        string calldata description,
        uint256[] calldata cidHashes,
        address[] calldata pkpIds
    ) external returns (uint256 groupId);

    /// @notice Gives a group another name and description and exactly these members.
    /// @dev Emits {GroupUpdated} if a string changed, and one event for each member that came or went.
    ///
    /// Notes:
    ///  - The price includes every member that is dropped. `changeGroupMembers` is the form whose price depends on its arguments only.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`);
    ///  - the strings are not too long (`StringTooLong`);
    ///  - the PKPs are this account's (`UnknownPkp`).
    /// @param accountApiKeyHash The account id.
    /// @param groupId The group.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    /// @param cidHashes The actions from now on; 0 = any action.
    /// @param pkpIds The PKPs from now on; address(0) = any PKP of the account.
    function updateGroup(
        uint256 accountApiKeyHash,
        uint256 groupId,
        string calldata name,
        string calldata description,
        uint256[] calldata cidHashes,
        address[] calldata pkpIds
    ) external;

    /// @notice Gives a group another name and description.
    /// @dev Emits {GroupUpdated}.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`);
    ///  - the strings are not too long (`StringTooLong`).
    /// @param accountApiKeyHash The account id.
    /// @param groupId The group.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    function updateGroupMetadata(uint256 accountApiKeyHash, uint256 groupId, string calldata name, string calldata description) external;

    /// @notice Removes a group and all it permitted, at the same price whatever it lists.
    /// @dev Emits {GroupRemoved}.
    ///
    /// Requirements:
    ///  - scope DeleteGroups;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param groupId The group.
    function removeGroup(uint256 apiKeyHash, uint256 groupId) external;

    /// @notice Adds and removes members of a group in one call.
    /// @dev Emits one event for each member that came or went: added actions, removed actions, added PKPs, removed PKPs.
    ///
    /// Requirements:
    ///  - the scope of each list that is not empty: ManageActions, AddPkp, RemovePkp on the group; action 0, PKP zero, and a call with
    ///    nothing but empty lists: owner only;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`);
    ///  - added PKPs are this account's (`UnknownPkp`);
    ///  - no member is both added and removed (`MemberInBothLists`);
    ///  - removed members are listed (`NotInGroup`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param groupId The group.
    /// @param addActions Actions to list.
    /// @param removeActions Actions to list no more.
    /// @param addPkps PKPs to list.
    /// @param removePkps PKPs to list no more.
    function changeGroupMembers(
        uint256 apiKeyHash,
        uint256 groupId,
        uint256[] calldata addActions,
        uint256[] calldata removeActions,
        address[] calldata addPkps,
        address[] calldata removePkps
    ) external;

    /// @notice Lists an action in a group. An action new to the account becomes one of its actions with empty strings.
    /// @dev Emits {ActionAddedToGroup}.
    ///
    /// Requirements:
    ///  - scope ManageActions on the group; action 0: owner only;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param groupId The group.
    /// @param action The action; 0 = any action.
    function addActionToGroup(uint256 apiKeyHash, uint256 groupId, uint256 action) external;

    /// @notice Ends the listing of an action in a group. The account keeps the action.
    /// @dev Emits {ActionRemovedFromGroup}.
    ///
    /// Requirements:
    ///  - scope ManageActions on the group; action 0: owner only;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`);
    ///  - it lists the action (`NotInGroup`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param groupId The group.
    /// @param action The action; 0 = any action.
    function removeActionFromGroup(uint256 apiKeyHash, uint256 groupId, uint256 action) external;

    /// @notice Lists a PKP in a group.
    /// @dev Emits {PkpAddedToGroup}.
    ///
    /// Requirements:
    ///  - scope AddPkp on the group; PKP zero: owner only;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`);
    ///  - the PKP is this account's (`UnknownPkp`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param groupId The group.
    /// @param pkpId The PKP; address(0) = any PKP of the account.
    function addPkpToGroup(uint256 apiKeyHash, uint256 groupId, address pkpId) external;

    /// @notice Ends the listing of a PKP in a group.
    /// @dev Emits {PkpRemovedFromGroup}.
    ///
    /// Requirements:
    ///  - scope RemovePkp on the group; PKP zero: owner only;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`);
    ///  - it lists the PKP (`NotInGroup`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param groupId The group.
    /// @param pkpId The PKP; address(0) = any PKP of the account.
    function removePkpFromGroup(uint256 apiKeyHash, uint256 groupId, address pkpId) external;

    // ----------------------------------------------------------------------------------------------------------- actions

    /// @notice Gives an action of the account its strings; an action new to the account becomes one of its actions.
    /// @dev Emits {ActionAdded} for a new one, {ActionUpdated} for one that had other strings.
    ///
    /// Notes:
    ///  - An action of the account may do nothing until a group lists it.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the action is not 0 (`ActionZero`);
    ///  - the strings are not too long (`StringTooLong`).
    /// @param accountApiKeyHash The account id.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    /// @param actionHash keccak256 of the CID text.
    function addAction(uint256 accountApiKeyHash, string calldata name, string calldata description, uint256 actionHash) external;

    /// @notice Removes an action from the account and from each of its groups, at the same price however many list it.
    /// @dev Emits {ActionRemoved}.
    ///
    /// Notes:
    ///  - Listed again later it starts from nothing. A group that lists "any action" still permits it.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - it is an action of the account (`UnknownAction`).
    /// @param accountApiKeyHash The account id.
    /// @param actionHash The action.
    function removeAction(uint256 accountApiKeyHash, uint256 actionHash) external;

    /// @notice Gives an action of the account another name and description.
    /// @dev Emits {ActionUpdated}.
    ///
    /// Notes:
    ///  - The strings belong to the account's action, not to a group; `groupId` is kept for compatibility.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the group is 0 or exists (`UnknownGroup`);
    ///  - it is an action of the account (`UnknownAction`);
    ///  - the strings are not too long (`StringTooLong`).
    /// @param accountApiKeyHash The account id.
    /// @param actionHash The action.
    /// @param groupId 0, or an existing group.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    function updateActionMetadata(
        uint256 accountApiKeyHash,
        uint256 actionHash,
        uint256 groupId,
        string calldata name,
        string calldata description
    ) external;

    // ---------------------------------------------------------------------------------------------------- contract admin
    // The contract admin (see ITwoStepAdmin) appoints the API payers, and so reaches managed accounts, never unmanaged ones.

    /// @notice Lets an address act as an API payer, on every managed account.
    /// @dev Emits {ApiPayerAdded}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the address is not zero (`ZeroAddress`).
    /// @param payer The address.
    function addApiPayer(address payer) external;

    /// @notice Ends the rights of an API payer at once.
    /// @dev Emits {ApiPayerRemoved}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the address is an API payer (`UnknownApiPayer`).
    /// @param payer The address.
    function removeApiPayer(address payer) external;

    /// @notice Names the address that funds the API payers. It has no rights in this contract.
    /// @dev Emits {AdminApiPayerSet}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the address is not zero (`ZeroAddress`).
    /// @param payer The address.
    function setAdminApiPayer(address payer) external;

    // --------------------------------------------------------------------------------------------------------- decisions

    /// @notice May this key run this action with some PKP or without any?
    /// @param key A key id or the id of a managed account.
    /// @param cid The action id; 0 is no action: false.
    /// @return Whether the key is live and has execute on an existing group that lists the action (or any).
    function canExecuteAction(uint256 key, uint256 cid) external view returns (bool);

    /// @notice May this key use this PKP in this action?
    /// @param key A key id or the id of a managed account.
    /// @param cid The action id; 0 is no action: false.
    /// @param pkp A PKP of the key's account; address(0) is no PKP: false.
    /// @return Whether the key is live and has execute on one existing group that lists both the action (or any) and the PKP (or any).
    function canUseWalletInAction(uint256 key, uint256 cid, address pkp) external view returns (bool);

    /// @notice The same question with everything an executor needs to act on the answer, read at one block. Never reverts.
    /// @param key A key id or the id of a managed account.
    /// @param cid The action id.
    /// @param pkp A PKP, or address(0) to ask about key and action only.
    /// @return allowed As `canUseWalletInAction`, or as `canExecuteAction` if `pkp` is zero.
    /// @return reason The first rule that failed; None if allowed.
    /// @return actionByName Some group that allows it lists the action itself, not "any action".
    /// @return accountId The key's account, also on a denial; 0 if the key was never known.
    /// @return derivationPath The PKP's path if it is a PKP of that account, else 0.
    /// @return blockNumber The block of this answer.
    /// @return blockTimestamp Its time in unix seconds.
    function explainExecution(
        uint256 key,
        uint256 cid,
        address pkp
    )
        external
        view
        returns (
            bool allowed,
            DenialReason reason,
            bool actionByName,
            uint256 accountId,
            uint256 derivationPath,
            uint256 blockNumber,
            uint256 blockTimestamp
        );

    /// @notice Does a live key hold a scope?
    /// @dev The account key of a managed account holds every scope on every existing group. A usage key of an unmanaged account still holds
    /// its scopes; but only Execute can be used there.
    /// @param key A key id or the id of a managed account.
    /// @param scope The scope.
    /// @param groupId An existing group (false if it is none), or 0: does the key hold the scope on every group? Ignored where the
    /// scope is account-wide.
    /// @return Whether it does.
    function hasScope(uint256 key, Scope scope, uint256 groupId) external view returns (bool);

    // ------------------------------------------------------------------------------------------------------------- views

    /// @notice Which account a key belongs to, in any state: an account id answers itself (managed or not), a usage key its account (also
    /// expired or removed: key ids are never given to another account).
    /// @param key An account id or key id.
    /// @return The account id, or 0 if the key was never known. Says nothing about what the key may do: see `getKey`.
    function accountOf(uint256 key) external view returns (uint256);

    /// @notice What a key is and whether it acts at this block.
    /// @param key An account id or key id, known or not.
    /// @return The answer; all zero for a key that was never known. `expiration` and `balance` are 0 for a removed key.
    function getKey(uint256 key) external view returns (KeyInfo memory);

    /// @notice Could the caller write to this account with its account id: does it exist, and is the caller its owner, or an API payer
    /// while it is managed? Never reverts.
    /// @param apiKeyHash The account id.
    /// @return Whether it could.
    function accountExistsAndIsMutable(uint256 apiKeyHash) external view returns (bool);

    /// @notice An account. Reverts with `UnknownAccount`.
    /// @param id The account id.
    /// @return The account.
    function getAccount(uint256 id) external view returns (AccountInfo memory);

    /// @notice A usage key that is set, live or expired. Reverts with `UnknownUsageKey`.
    /// @param key The key id.
    /// @return The key.
    function getUsageApiKey(uint256 key) external view returns (UsageApiKeyInfo memory);

    /// @notice A group. Reverts with `UnknownAccount`, `GroupZero`, `UnknownGroup`.
    /// @param id The account id.
    /// @param groupId The group.
    /// @return The group.
    function getGroup(uint256 id, uint256 groupId) external view returns (GroupInfo memory);

    /// @notice The derivation path of a wallet registered to an account: PKPs and wallets of usage keys.
    /// @param id The account id.
    /// @param wallet The wallet's address.
    /// @return The path, or 0 if the wallet is not registered to this account.
    function getWalletDerivation(uint256 id, address wallet) external view returns (uint256);

    /// @notice The PKP of a number. Reverts with `UnknownPkpNumber`.
    /// @param id The account id.
    /// @param number From 1.
    /// @return The PKP's address, never zero.
    function pkpByNumber(uint256 id, uint256 number) external view returns (address);

    /// @notice The existing groups of an account, by ascending id.
    /// @dev All lists: `UnknownAccount` for an unknown account, then `UnknownGroup` or `GroupZero`; at most 1,000 items a page (200 usage
    /// keys), else `PageTooLarge`; a page past the end is empty. Ask for smaller pages where descriptions are long: a node limits the gas of a call.
    /// @param id The account id.
    /// @param offset How many items to skip.
    /// @param limit How many items to show at most.
    /// @return items The page.
    /// @return total How many there are in all.
    function listGroups(uint256 id, uint256 offset, uint256 limit) external view returns (GroupInfo[] memory items, uint256 total);

    /// @notice The actions of an account, in the order in which the account first had them.
    /// @param id The account id.
    /// @param offset How many items to skip.
    /// @param limit At most 1,000.
    /// @return items The page.
    /// @return total How many there are in all.
    function listActions(uint256 id, uint256 offset, uint256 limit) external view returns (ActionInfo[] memory items, uint256 total);

    /// @notice The actions a group lists: first "any action" (id 0) if it is listed, then as `listActions`.
    /// @param id The account id.
    /// @param groupId The group.
    /// @param offset How many items to skip.
    /// @param limit At most 1,000.
    /// @return items The page.
    /// @return total How many there are in all.
    function listActionsInGroup(
        uint256 id,
        uint256 groupId,
        uint256 offset,
        uint256 limit
    ) external view returns (ActionInfo[] memory items, uint256 total);

    /// @notice The PKPs of an account, by ascending number.
    /// @param id The account id.
    /// @param offset How many items to skip.
    /// @param limit At most 1,000.
    /// @return items The page.
    /// @return total How many there are in all.
    function listPkps(uint256 id, uint256 offset, uint256 limit) external view returns (PkpInfo[] memory items, uint256 total);

    /// @notice The PKPs a group lists: first "any PKP" (number 0, address zero) if it is listed, then by ascending number.
    /// @param id The account id.
    /// @param groupId The group.
    /// @param offset How many items to skip.
    /// @param limit At most 1,000.
    /// @return items The page.
    /// @return total How many there are in all.
    function listPkpsInGroup(
        uint256 id,
        uint256 groupId,
        uint256 offset,
        uint256 limit
    ) external view returns (PkpInfo[] memory items, uint256 total);

    /// @notice The usage keys that are set on an account, in the order in which they were set; when one is removed, the last takes its place.
    /// @param id The account id.
    /// @param offset How many items to skip.
    /// @param limit At most 200.
    /// @return items The page.
    /// @return total How many there are in all.
    function listUsageApiKeys(
        uint256 id,
        uint256 offset,
        uint256 limit
    ) external view returns (UsageApiKeyInfo[] memory items, uint256 total);

    /// @notice What every derived key is bound to: `keccak256(abi.encode("keywright/v1", block.chainid, address(this)))` at deployment.
    function keyNamespace() external view returns (bytes32);

    /// @notice The API payers, in no promised order.
    function apiPayers() external view returns (address[] memory);

    /// @notice The address that funds the API payers; zero until it is set.
    function adminApiPayer() external view returns (address);
}
