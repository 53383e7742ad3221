// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {DenialReason} from "../types/AccountTypes.sol";
import {IAccountErrors} from "./IAccountErrors.sol";

/// @title Every write and every decision
/// @notice Ids, zero and who may write are explained in `IAccountManager`.
interface IAccountCore is IAccountErrors {
    // ---------------------------------------------------------------------------------------------------------- events

    /// @notice An account was created. `admin` is its owner.
    event AccountCreated(
        uint256 indexed id,
        address indexed admin,
        bool managed,
        string name,
        string description,
        uint256 actor
    );
    /// @notice An account's name or description changed.
    event AccountUpdated(uint256 indexed id, string name, string description, uint256 actor);
    /// @notice A managed account became ChainSecured with the consent of `newAdmin`, which an API payer's keyholder
    ///   verified: it owns the account, and API payers cannot write to it.
    event AccountConvertedToChainSecured(uint256 indexed id, address oldAdmin, address indexed newAdmin, uint256 actor);
    /// @notice An account's owner changed. The account is ChainSecured from here on.
    event AccountOwnershipTransferred(uint256 indexed id, address oldOwner, address indexed newOwner, uint256 actor);
    /// @notice An account was frozen or unfrozen.
    event AccountFreezeSet(uint256 indexed id, bool frozen, uint256 actor);

    /// @notice A usage key was created or its values changed. A new key starts with empty lists.
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
    /// @notice The group lists of a usage key were replaced. Order and duplicates are the caller's and have no meaning.
    event UsageApiKeyScopesSet(
        uint256 indexed id,
        uint256 indexed keyId,
        uint256[] manageIPFSIdsInGroups,
        uint256[] addPkpToGroups,
        uint256[] removePkpFromGroups,
        uint256[] executeInGroups,
        uint256 actor
    );
    /// @notice A usage key's name or description changed.
    event UsageApiKeyUpdated(uint256 indexed id, uint256 indexed keyId, string name, string description, uint256 actor);
    /// @notice A usage key was revoked for ever.
    event UsageApiKeyRemoved(uint256 indexed id, uint256 indexed keyId, uint256 actor);
    /// @notice Every usage key of the account was revoked for ever.
    event AllUsageApiKeysRevoked(uint256 indexed id, uint256 actor);

    /// @notice A group was added; its members follow in events of their own.
    event GroupAdded(uint256 indexed id, uint256 indexed groupId, string name, string description, uint256 actor);
    /// @notice A group's name or description changed.
    event GroupUpdated(uint256 indexed id, uint256 indexed groupId, string name, string description, uint256 actor);
    /// @notice A group was removed with its members; its id is never reused.
    event GroupRemoved(uint256 indexed id, uint256 indexed groupId, uint256 actor);

    /// @notice An action was added to a group. An action new to the account is created with empty strings. 0 = any
    ///   action.
    event ActionAddedToGroup(uint256 indexed id, uint256 indexed groupId, uint256 indexed action, uint256 actor);
    /// @notice An action was removed from a group. The account keeps the action.
    event ActionRemovedFromGroup(uint256 indexed id, uint256 indexed groupId, uint256 indexed action, uint256 actor);
    /// @notice A PKP was added to a group. address(0) = any PKP of the account.
    event PkpAddedToGroup(uint256 indexed id, uint256 indexed groupId, address indexed pkpId, uint256 actor);
    /// @notice A PKP was removed from a group.
    event PkpRemovedFromGroup(uint256 indexed id, uint256 indexed groupId, address indexed pkpId, uint256 actor);

    /// @notice An action was added to the account.
    event ActionAdded(uint256 indexed id, uint256 indexed action, string name, string description, uint256 actor);
    /// @notice An action's name or description changed.
    event ActionUpdated(uint256 indexed id, uint256 indexed action, string name, string description, uint256 actor);
    /// @notice An action was removed from the account and from each of its groups.
    event ActionRemoved(uint256 indexed id, uint256 indexed action, uint256 actor);

    /// @notice A wallet was registered to an account. If the first byte of the path is 1 it is the account's next PKP;
    ///   if it is 2 it is the wallet of a usage key, which is recorded and not listed.
    event WalletDerivationRegistered(
        uint256 indexed id,
        address indexed pkpId,
        uint256 derivationPath,
        string name,
        string description,
        uint256 actor
    );
    /// @notice A PKP's name or description changed.
    event PkpUpdated(uint256 indexed id, address indexed pkpId, string name, string description, uint256 actor);
    /// @notice The ops that no action may request with this PKP changed: a set of bits, 0 = none is denied.
    event PkpOpsSet(uint256 indexed id, address indexed pkpId, uint256 deniedOps, uint256 actor);

    /// @notice One call of a `tryMulticall` failed; the others are unaffected.
    /// @param reason Its revert data; empty if it ran out of gas.
    event CallFailed(uint256 indexed index, bytes reason);

    // -------------------------------------------------------------------------------------------------------- accounts

    /// @notice Creates an account.
    /// @dev Emits {AccountCreated}.
    ///
    /// Notes:
    ///  - Warning: an API payer can take an id before its wallet does (an account managed by the payer under the packed
    ///    id of a stranger). A wallet that finds its id taken uses another wallet and hands the account over with
    ///    `transferOwnership`.
    ///  - A usage key of the same id does not block this: an id that could mean both means the account.
    ///
    /// Requirements:
    ///  - managed: the caller is an API payer; else: the caller is `adminWalletAddress` (`NotAuthorized`);
    ///  - unmanaged: the id is the caller's packed id (`ForeignAccountId`);
    ///  - the id is not zero (`ZeroId`); the owner is neither zero (`ZeroAddress`) nor this contract or a delegate
    ///    (`OwnerIsThisContract`) nor the forwarder (`ForwarderNotAllowed`);
    ///  - there is no such account (`AccountIdTaken`);
    ///  - the strings are not too long (`StringTooLong`).
    /// @param apiKeyHash The account id: keccak256 of the text of the account key, or
    ///   `keccak256(abi.encodePacked(adminWalletAddress))`.
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

    /// @notice Creates a ChainSecured account of the caller: `newAccount` with the caller's packed id, unmanaged, owned
    ///   by the caller.
    /// @dev Emits {AccountCreated}.
    ///
    /// Requirements: as for an unmanaged `newAccount`.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    function newChainSecuredAccount(string calldata name, string calldata description) external;

    /// @notice Converts a managed account into a ChainSecured one, for ever.
    /// @dev Emits {AccountConvertedToChainSecured}; if the owner itself calls and names another wallet, whose consent
    ///   nobody has verified, {AccountOwnershipTransferred}.
    ///
    /// Notes:
    ///  - Id, groups, PKPs, actions and usage keys stay. The account key stops acting.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the account is managed (`AccountChainSecured`);
    ///  - the new owner is neither zero (`ZeroAddress`), nor this contract or a delegate (`OwnerIsThisContract`), nor
    ///    the forwarder (`ForwarderNotAllowed`).
    /// @param apiKeyHash The account id.
    /// @param newAdminWalletAddress The owner from now on; may be the present one.
    function convertToChainSecuredAccount(uint256 apiKeyHash, address newAdminWalletAddress) external;

    /// @notice Transfers an account to another owner: a wallet, a multisig, a governance contract. A managed account
    ///   becomes ChainSecured.
    /// @dev Emits {AccountOwnershipTransferred}.
    ///
    /// Notes:
    ///  - The rights of the old owner and of the API payers end at once. Usage keys stay: `multicall` with
    ///    `revokeAllUsageApiKeys` ends them in the same transaction.
    ///  - One step: an owner that cannot send transactions cannot be replaced by anybody.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the new owner is neither zero (`ZeroAddress`), nor this contract or a delegate (`OwnerIsThisContract`), nor
    ///    the forwarder (`ForwarderNotAllowed`), nor the present one (`SameOwner`).
    /// @param apiKeyHash The account id.
    /// @param newOwner The owner from now on.
    function transferOwnership(uint256 apiKeyHash, address newOwner) external;

    /// @notice Sets an account's name and description.
    /// @dev Emits {AccountUpdated}.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the strings are not too long (`StringTooLong`).
    /// @param apiKeyHash The account id.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    function updateAccountMetadata(uint256 apiKeyHash, string calldata name, string calldata description) external;

    /// @notice Freezes or unfreezes an account at once. While frozen, every decision denies
    ///   (`DenialReason.AccountFrozen`) and no usage key writes (`AccountFrozen`). The owner, and an API payer acting
    ///   for the owner, still can write.
    /// @dev Emits {AccountFreezeSet}.
    ///
    /// Requirements:
    ///  - owner only.
    /// @param id The account id.
    /// @param frozen Whether it is frozen from now on.
    function setAccountFrozen(uint256 id, bool frozen) external;

    // ------------------------------------------------------------------------------------------------------ usage keys

    /// @notice Sets a usage key: creates it, or replaces everything it had.
    /// @dev Emits {UsageApiKeySet} if the key is new or one of its values changed, {UsageApiKeyScopesSet} if it is new
    ///   or one of its lists changed.
    ///
    /// Notes:
    ///  - A key id belongs to the first account that sets it, for ever. Whoever sets a stranger's key id first (seen in
    ///    the mempool) gains nothing by it: only the holder of the key's bytes can use it. The owner then makes another
    ///    key.
    ///  - Revocation is final: the id of a key that was removed, alone or with all others, can never be set again.
    ///  - An expiration in the past is accepted: the key is dead at once.
    ///  - Ids of removed groups are accepted in the lists and mean nothing. 0 means every existing group, later ones
    ///    included.
    ///  - Gas is per list and 224 group ids, not per group.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the key id is not zero (`ZeroId`);
    ///  - expiration below 2^40, balance below 2^64 (`ValueTooLarge`);
    ///  - there is no account of the key's id, and it is no other account's usage key (`KeyIdTaken`);
    ///  - the key was not revoked (`KeyRevoked`);
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

    /// @notice Sets a usage key's name and description.
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

    /// @notice Revokes a usage key at once and for ever.
    /// @dev Emits {UsageApiKeyRemoved}.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the key is set on this account, live or expired (`UnknownUsageKey`).
    /// @param accountApiKeyHash The account id.
    /// @param usageApiKeyHash The key id.
    function removeUsageApiKey(uint256 accountApiKeyHash, uint256 usageApiKeyHash) external;

    /// @notice Revokes every usage key of an account at once and for ever, at constant gas.
    /// @dev Emits {AllUsageApiKeysRevoked} if there was one.
    ///
    /// Requirements:
    ///  - owner only.
    /// @param id The account id.
    function revokeAllUsageApiKeys(uint256 id) external;

    // ------------------------------------------------------------------------------------------------------------ PKPs

    /// @notice Registers a wallet whose key the executor derives: a PKP (path kind 1) or the wallet of a usage key
    ///   (path kind 2).
    /// @dev Emits {WalletDerivationRegistered}.
    ///
    /// Notes:
    ///  - PKPs are per account: a registration blocks no other account. Registering a stranger's address gains nothing:
    ///    the executor derives the address again from the path, which names the account, before it uses a key.
    ///  - Registering the same wallet with the same path and strings again succeeds and does nothing. The strings of a
    ///    usage key's wallet are emitted and not stored.
    ///
    /// Requirements:
    ///  - scope CreatePkps;
    ///  - the address is not zero (`ZeroAddress`);
    ///  - the path is of a known kind (`UnknownPathKind`) and made for this account (`ForeignDerivationPath`);
    ///  - the strings are not too long (`StringTooLong`);
    ///  - the account has not registered the wallet otherwise (`PkpTaken`).
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

    /// @notice Sets a PKP's name and description.
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
    function updatePkpMetadata(
        uint256 apiKeyHash,
        address pkpId,
        string calldata name,
        string calldata description
    ) external;

    /// @notice Sets the ops that no action may request with a PKP, whatever its groups allow. The executor enforces it
    ///   outside the action's code.
    /// @dev Emits {PkpOpsSet}.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - it is a PKP of this account (`UnknownPkp`);
    ///  - the set is below 2^128 (`ValueTooLarge`).
    /// @param id The account id.
    /// @param pkp The PKP's address.
    /// @param deniedOps Bits: 1 sign a message, 2 sign typed data, 4 sign a transaction, 8 sign a digest, 16 encrypt,
    ///   32 decrypt, 64 give the private key, 128 sign with Ed25519, 256 sign with Schnorr (BIP-340), 512 sign with
    ///   P-256. Others are kept for ops to come. 0 = none denied.
    function setPkpOps(uint256 id, address pkp, uint256 deniedOps) external;

    // ---------------------------------------------------------------------------------------------------------- groups

    /// @notice Adds a group, with members if any are given.
    /// @dev Emits {GroupAdded}, then {ActionAddedToGroup} and {PkpAddedToGroup} for each member.
    ///
    /// Notes:
    ///  - A usage key may give members only if it could add them to any group: with the wildcard [0] of the matching
    ///    list. Else a key that may create groups and execute in all of them could run anything.
    ///
    /// Requirements:
    ///  - scope CreateGroups; with actions also ManageActions on 0, with PKPs also AddPkp on 0; action 0 and PKP zero:
    ///    owner only;
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

    /// @notice Sets a group's name, description and members.
    /// @dev Emits {GroupUpdated} if a string changed, and one event for each member that came or went.
    ///
    /// Notes:
    ///  - Gas grows with the members that are dropped. The gas of `changeGroupMembers` depends on its arguments only.
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

    /// @notice Sets a group's name and description.
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
    function updateGroupMetadata(
        uint256 accountApiKeyHash,
        uint256 groupId,
        string calldata name,
        string calldata description
    ) external;

    /// @notice Removes a group and everything it permitted, at constant gas.
    /// @dev Emits {GroupRemoved}.
    ///
    /// Requirements:
    ///  - scope DeleteGroups;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param groupId The group.
    function removeGroup(uint256 apiKeyHash, uint256 groupId) external;

    /// @notice Adds and removes members of a group in one call.
    /// @dev Emits one event for each member that came or went: added actions, removed actions, added PKPs, removed
    ///   PKPs.
    ///
    /// Requirements:
    ///  - the scope of each list that is not empty: ManageActions, AddPkp, RemovePkp on the group; action 0, PKP zero,
    ///    and a call with nothing but empty lists: owner only;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`);
    ///  - added PKPs are this account's (`UnknownPkp`);
    ///  - no member is both added and removed (`MemberInBothLists`);
    ///  - removed members are listed (`NotInGroup`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param groupId The group.
    /// @param addActions Actions to add.
    /// @param removeActions Actions to remove.
    /// @param addPkps PKPs to add.
    /// @param removePkps PKPs to remove.
    function changeGroupMembers(
        uint256 apiKeyHash,
        uint256 groupId,
        uint256[] calldata addActions,
        uint256[] calldata removeActions,
        address[] calldata addPkps,
        address[] calldata removePkps
    ) external;

    /// @notice Adds an action to a group. An action new to the account is created with empty strings.
    /// @dev Emits {ActionAddedToGroup}.
    ///
    /// Requirements:
    ///  - scope ManageActions on the group; action 0: owner only;
    ///  - the group is not 0 (`GroupZero`) and exists (`UnknownGroup`).
    /// @param apiKeyHash The account id, or (through an API payer) a usage key id.
    /// @param groupId The group.
    /// @param action The action; 0 = any action.
    function addActionToGroup(uint256 apiKeyHash, uint256 groupId, uint256 action) external;

    /// @notice Removes an action from a group. The account keeps the action.
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

    /// @notice Adds a PKP to a group.
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

    /// @notice Removes a PKP from a group.
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

    // --------------------------------------------------------------------------------------------------------- actions

    /// @notice Adds an action to the account, or sets the name and description of one that it has.
    /// @dev Emits {ActionAdded} for a new one, {ActionUpdated} for one that had other strings.
    ///
    /// Notes:
    ///  - An action permits nothing until a group lists it.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - the action is not 0 (`ActionZero`);
    ///  - the strings are not too long (`StringTooLong`).
    /// @param accountApiKeyHash The account id.
    /// @param name At most 128 bytes.
    /// @param description At most 1,024 bytes.
    /// @param actionHash keccak256 of the CID text.
    function addAction(
        uint256 accountApiKeyHash,
        string calldata name,
        string calldata description,
        uint256 actionHash
    ) external;

    /// @notice Removes an action from the account and from each of its groups, at constant gas.
    /// @dev Emits {ActionRemoved}.
    ///
    /// Notes:
    ///  - Added again later, it is in no group. A group that lists "any action" still permits it.
    ///
    /// Requirements:
    ///  - owner only;
    ///  - it is an action of the account (`UnknownAction`).
    /// @param accountApiKeyHash The account id.
    /// @param actionHash The action.
    function removeAction(uint256 accountApiKeyHash, uint256 actionHash) external;

    /// @notice Sets the name and description of an action of the account.
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

    // --------------------------------------------------------------------------------------------------------- batches

    /// @notice Makes several calls of this contract in one transaction, in order: all succeed, or none has an effect.
    /// @dev Each call is authorized by itself; the first failure reverts the batch with its error.
    /// @param data The calls, encoded.
    /// @return results What each returned, encoded.
    function multicall(bytes[] calldata data) external returns (bytes[] memory results);

    /// @notice Makes several calls of this contract in one transaction; each succeeds or fails on its own.
    /// @dev Emits {CallFailed} for each that failed.
    ///
    /// Notes:
    ///  - Each call gets 1,000,000 gas, which is checked before it starts: too little gas reverts the whole transaction
    ///    and cannot make one call fail. A call that needs more belongs in a transaction of its own.
    ///
    /// Requirements:
    ///  - no call is `multicall` or `tryMulticall` (`NestedBatch`);
    ///  - before each call there is gas for it (`TooLittleGas`).
    /// @param data The calls, encoded.
    /// @return succeeded Which of them succeeded.
    function tryMulticall(bytes[] calldata data) external returns (bool[] memory succeeded);

    // ------------------------------------------------------------------------------------------------------- decisions

    /// @notice May this key run this action with some PKP or without any?
    /// @param key A key id or the id of a managed account.
    /// @param cid The action id; 0 is no action: false.
    /// @return Whether the key is live and has execute on an existing group that lists the action (or any).
    function canExecuteAction(uint256 key, uint256 cid) external view returns (bool);

    /// @notice May this key use this PKP in this action?
    /// @param key A key id or the id of a managed account.
    /// @param cid The action id; 0 is no action: false.
    /// @param pkp A PKP of the key's account; address(0) is no PKP: false.
    /// @return Whether the key is live and has execute on one existing group that lists both the action (or any) and
    ///   the PKP (or any).
    ///
    /// Gas: at most 46,000 (21,000 of them any transaction's) up to group id 223, then at most 14,000 per further 224
    /// group ids ever used (2,500 where none of them exists), allowed or not. The same for the other two decisions.
    ///
    /// Registration does not prove that the address belongs to the account: an account may register any address. The
    /// executor derives the address from the registered path before every use and compares. Denied ops are not
    /// considered: see `explainExecution`.
    function canUseWalletInAction(uint256 key, uint256 cid, address pkp) external view returns (bool);

    /// @notice The decision with everything an executor needs, read at one block. Never reverts.
    /// @param key A key id or the id of a managed account.
    /// @param cid The action id.
    /// @param pkp A PKP, or address(0) to ask about key and action only.
    /// @return allowed As `canUseWalletInAction`, or as `canExecuteAction` if `pkp` is zero.
    /// @return reason The first rule that fails; None if allowed.
    /// @return actionByName Whether a group that allows it lists the action itself, not "any action".
    /// @return accountId The key's account, also on a denial; 0 if the key was never known.
    /// @return derivationPath The PKP's path if it is a PKP of that account, else 0.
    /// @return blockNumber The block of this answer.
    /// @return blockTimestamp Its time in unix seconds.
    /// @return deniedOps The ops denied with the PKP (see `setPkpOps`); 0 if it is no PKP of that account.
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
            uint256 blockTimestamp,
            uint256 deniedOps
        );

    /// @notice Whether the account exists and the caller may write to it with the account id: as its owner, or as an
    ///   API payer while it is managed. Never reverts.
    /// @param apiKeyHash The account id.
    /// @return Whether it could.
    function accountExistsAndIsMutable(uint256 apiKeyHash) external view returns (bool);

    /// @notice The namespace that every derived key is bound to: `keccak256(abi.encode("keywright/v1", block.chainid,
    ///   address(this)))` at deployment.
    function keyNamespace() external view returns (bytes32);

    /// @notice The commitment to the root of all derived keys: `keccak256(abi.encode("keywright/root/v1", publicKey))`,
    ///   where `publicKey` is the Ed25519 key that the root derives for this purpose alone. It does not depend on this
    ///   contract, is given at deployment, and nobody can change it: a keyholder with another root does not start.
    function rootCommitment() external view returns (bytes32);
}
