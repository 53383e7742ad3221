// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ERC2771Context} from "@openzeppelin/contracts/metatx/ERC2771Context.sol";
import {AccountDecisions} from "./AccountDecisions.sol";
import {ApiPayers} from "./ApiPayers.sol";
import {Batches} from "./Batches.sol";
import {Delegating} from "./Delegating.sol";
import {GroupMembers} from "./GroupMembers.sol";
import {IAccountCore} from "./interfaces/IAccountCore.sol";
import {IAccountManager} from "./interfaces/IAccountManager.sol"; // what this address answers, for its artifact
import {ITwoStepAdmin} from "./interfaces/ITwoStepAdmin.sol";
import {Addresses} from "./libraries/Addresses.sol";
import {GroupRegister, GroupSets} from "./libraries/GroupSets.sol";
import {Labels} from "./libraries/Labels.sol";
import {Scopes} from "./libraries/Scopes.sol";
import {Texts} from "./libraries/Texts.sol";
import {UsageKeys} from "./libraries/UsageKeys.sol";
import {
    Account,
    AccountStorage,
    Action,
    CREATE_GROUPS,
    CREATE_PKPS,
    DELETE_GROUPS,
    FROZEN,
    Group,
    KeyHead,
    MANAGED,
    Pkp,
    UsageKey,
    Wallet
} from "./types/AccountStorage.sol";
import {DenialReason, Scope} from "./types/AccountTypes.sol";

/// @title AccountManager
/// @notice Every write; decisions come from `AccountDecisions`. `IAccountManager` documents each function. Not
///   upgradeable.
/// @dev Reading order: `IAccountManager` (ids, zero, who may write), `types/AccountStorage`, `libraries/GroupSets`
///   (sets of groups as bitmaps), this file from `_authorize` down with `AccountRules` beside it,
///   `libraries/UsageKeys`, `GroupMembers`, `AccountDecisions` (who may run what), `Batches`. Functions that are not
///   here run the code of `ApiPayers`, and behind that of `AccountLists`, on this contract's storage. Each write reads
///   as guards, effects, event. `id` is always the account; `apiKeyHash` and `accountApiKeyHash`, the specification's
///   names, and `actor` in private functions are what the caller gave: the account id, or a usage key id where scopes
///   are asked for (elsewhere the two are equal).
contract AccountManager is AccountStorage, Batches, AccountDecisions, GroupMembers, Delegating {
    using GroupSets for GroupRegister;
    using Labels for Account;
    using Labels for Action;
    using Labels for Group;
    using Labels for Pkp;
    using Labels for UsageKey;
    using Scopes for Scope;
    using UsageKeys for KeyHead;
    using UsageKeys for UsageKey;
    using UsageKeys for mapping(uint256 keyId => UsageKey);

    uint256 private constant KIND_PKP = 1;
    uint256 private constant KIND_USAGE_KEY = 2;

    /// @inheritdoc IAccountCore
    bytes32 public immutable keyNamespace;
    /// @inheritdoc IAccountCore
    bytes32 public immutable rootCommitment;

    /// @param firstAdmin The contract admin, who appoints the API payers.
    /// @param delaySeconds The delay of a payer's addition once a managed account exists; at most a year.
    /// @param forwarder The ERC-2771 forwarder that owners may act through.
    /// @param rootCommitment_ The commitment to the root key, as the keyholder names it before this contract exists.
    constructor(
        address firstAdmin,
        uint256 delaySeconds,
        address forwarder,
        bytes32 rootCommitment_
    ) ERC2771Context(forwarder) Delegating(address(new ApiPayers(delaySeconds, forwarder))) {
        Addresses.requireSet(forwarder);
        Addresses.requireRole(firstAdmin, forwarder);
        if (rootCommitment_ == 0) revert ZeroRootCommitment();

        _admin = firstAdmin;
        rootCommitment = rootCommitment_;
        keyNamespace = keccak256(abi.encode("keywright/v1", block.chainid, address(this)));
        emit ITwoStepAdmin.AdminChanged(address(0), firstAdmin);
    }

    // --------------------------------------------------------------------------------------------------- authorization

    /// @dev Authorizes every write that takes an id. Returns the account that `actor` stands for.
    function _authorize(uint256 actor, Scope scope, uint256 groupId) private view returns (uint256 id) {
        bool asOwner;
        (id, asOwner) = _enter(actor);
        if (!asOwner && !_holds(_usageKeys[actor], scope, groupId)) revert MissingScope(scope, groupId);
    }

    /// @dev Authenticates the caller: the owner, an API payer for the owner, or an API payer with a live usage key.
    function _enter(uint256 actor) private view returns (uint256 id, bool asOwner) {
        if (_isOwner(actor)) return (actor, true);
        if (!_isApiPayer(msg.sender)) revert NotAuthorized(_msgSender());
        if (_isManaged(_accounts[actor])) return (actor, true);
        Subject memory subject = _subject(actor);
        id = subject.accountId;
        if (id == 0) revert UnknownAccount(actor);
        if (!_isManaged(_accounts[id])) revert AccountChainSecured(id);
        if (subject.denial == DenialReason.UnknownKey) revert UnknownUsageKey(actor);
        if (subject.denial == DenialReason.KeyExpired) revert KeyExpired(actor);
        if (subject.frozen) revert AccountFrozen(id);
    }

    function _isOwner(uint256 id) private view returns (bool) {
        address owner = _accounts[id].owner;
        return owner != address(0) && owner == _msgSender();
    }

    function _authorizeOwner(uint256 actor) private view returns (uint256 id) {
        return _authorize(actor, Scope.OwnerOnly, 0);
    }

    // -------------------------------------------------------------------------------------------------------- accounts

    /// @inheritdoc IAccountCore
    function newAccount(
        uint256 apiKeyHash,
        bool managed,
        string calldata name,
        string calldata description,
        address adminWalletAddress
    ) external {
        address caller = _msgSender();
        if (managed ? !_isApiPayer(msg.sender) : caller != adminWalletAddress) revert NotAuthorized(caller);
        uint256 expected = _packedId(caller);
        if (!managed && apiKeyHash != expected) revert ForeignAccountId(apiKeyHash, expected);

        _create(apiKeyHash, managed, name, description, adminWalletAddress);
        if (managed && !_payers.managedAccountExists) _payers.managedAccountExists = true;
    }

    /// @inheritdoc IAccountCore
    function newChainSecuredAccount(string calldata name, string calldata description) external {
        address owner = _msgSender();
        _create(_packedId(owner), false, name, description, owner);
    }

    /// @inheritdoc IAccountCore
    function convertToChainSecuredAccount(uint256 apiKeyHash, address newAdminWalletAddress) external {
        uint256 id = _authorizeOwner(apiKeyHash);
        if (!_isManaged(_accounts[id])) revert AccountChainSecured(id);
        _requireOwnable(newAdminWalletAddress);

        // An owner can name any wallet; a payer converts only to one whose consent the keyholder has verified.
        if (_isOwner(id) && newAdminWalletAddress != _msgSender()) _transfer(id, newAdminWalletAddress);
        else emit AccountConvertedToChainSecured(id, _handOver(id, newAdminWalletAddress), newAdminWalletAddress, id);
    }

    /// @inheritdoc IAccountCore
    function transferOwnership(uint256 apiKeyHash, address newOwner) external {
        uint256 id = _authorizeOwner(apiKeyHash);
        _requireOwnable(newOwner);
        if (newOwner == _accounts[id].owner) revert SameOwner(newOwner);

        _transfer(id, newOwner);
    }

    /// @inheritdoc IAccountCore
    function updateAccountMetadata(uint256 apiKeyHash, string calldata name, string calldata description) external {
        uint256 id = _authorizeOwner(apiKeyHash);

        if (_accounts[id].label(name, description)) emit AccountUpdated(id, name, description, id);
    }

    /// @inheritdoc IAccountCore
    function setAccountFrozen(uint256 id, bool frozen) external {
        Account storage account = _accounts[_authorizeOwner(id)];
        if (_isFrozen(account) == frozen) return;

        account.flags = frozen ? account.flags | FROZEN : account.flags & ~FROZEN;
        emit AccountFreezeSet(id, frozen, id);
    }

    /// @inheritdoc IAccountCore
    function accountExistsAndIsMutable(uint256 apiKeyHash) external view returns (bool) {
        return _isOwner(apiKeyHash) || (_isManaged(_accounts[apiKeyHash]) && _isApiPayer(msg.sender));
    }

    function _create(
        uint256 id,
        bool managed,
        string calldata name,
        string calldata description,
        address owner
    ) private {
        if (id == 0) revert ZeroId();
        _requireOwnable(owner);
        Account storage account = _accounts[id];
        if (account.owner != address(0)) revert AccountIdTaken(id);

        account.owner = owner;
        if (managed) account.flags = MANAGED;
        account.label(name, description);
        emit AccountCreated(id, owner, managed, name, description, id);
    }

    function _transfer(uint256 id, address newOwner) private {
        emit AccountOwnershipTransferred(id, _handOver(id, newOwner), newOwner, id);
    }

    /// @dev Replaces the owner. The account is ChainSecured afterwards.
    function _handOver(uint256 id, address newOwner) private returns (address oldOwner) {
        Account storage account = _accounts[id];
        oldOwner = account.owner;
        account.owner = newOwner;
        account.flags &= ~MANAGED;
    }

    function _requireOwnable(address owner) private view {
        if (owner == address(this) || _isDelegate(owner)) revert OwnerIsThisContract();
        Addresses.requireRole(owner, trustedForwarder());
    }

    function _packedId(address wallet) private pure returns (uint256) {
        return uint256(keccak256(abi.encodePacked(wallet)));
    }

    // ------------------------------------------------------------------------------------------------------ usage keys

    /// @inheritdoc IAccountCore
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
    ) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        if (usageApiKeyHash == 0) revert ZeroId();
        KeyHead memory wanted;
        wanted.expiration = uint40(_atMost(expiration, type(uint40).max));
        wanted.balance = uint64(_atMost(balance, type(uint64).max));
        wanted.flags =
            (createGroups ? CREATE_GROUPS : 0) |
            (deleteGroups ? DELETE_GROUPS : 0) |
            (createPKPs ? CREATE_PKPS : 0);
        if (_accounts[usageApiKeyHash].owner != address(0)) revert KeyIdTaken(usageApiKeyHash);
        UsageKey storage key = _usageKeys[usageApiKeyHash];
        bool isNew = key.isFree(_accounts[id], id, usageApiKeyHash);
        Texts.requireShort(name, description);
        uint256[][4] memory lists;
        uint256 lastId = _accounts[id].groupsThatExist.lastId;
        lists[0] = GroupSets.fromList(manageIPFSIdsInGroups, lastId);
        lists[1] = GroupSets.fromList(addPkpToGroups, lastId);
        lists[2] = GroupSets.fromList(removePkpFromGroups, lastId);
        lists[3] = GroupSets.fromList(executeInGroups, lastId);

        if (isNew) key.claim(_accounts[id], id, usageApiKeyHash);
        if (key.setValues(wanted, name, description) || isNew) {
            emit UsageApiKeySet(id, usageApiKeyHash, expiration, balance, name, description, wanted.flags, id);
        }
        if (key.setLists(lists) || isNew) {
            emit UsageApiKeyScopesSet(
                id,
                usageApiKeyHash,
                manageIPFSIdsInGroups,
                addPkpToGroups,
                removePkpFromGroups,
                executeInGroups,
                id
            );
        }
    }

    /// @inheritdoc IAccountCore
    function updateUsageApiKeyMetadata(
        uint256 accountApiKeyHash,
        uint256 usageApiKeyHash,
        string calldata name,
        string calldata description
    ) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        UsageKey storage key = _usageKeyOf(id, usageApiKeyHash);

        if (key.label(name, description)) {
            emit UsageApiKeyUpdated(id, usageApiKeyHash, name, description, id);
        }
    }

    /// @inheritdoc IAccountCore
    function removeUsageApiKey(uint256 accountApiKeyHash, uint256 usageApiKeyHash) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        _usageKeyOf(id, usageApiKeyHash);

        _usageKeys.remove(_accounts[id], usageApiKeyHash);
        emit UsageApiKeyRemoved(id, usageApiKeyHash, id);
    }

    /// @inheritdoc IAccountCore
    function revokeAllUsageApiKeys(uint256 id) external {
        Account storage account = _accounts[_authorizeOwner(id)];
        if (account.usageKeys[account.epoch].length == 0) return;
        uint256 epoch = _atMost(uint256(account.epoch) + 1, type(uint16).max);

        account.epoch = uint16(epoch);
        emit AllUsageApiKeysRevoked(id, id);
    }

    function _usageKeyOf(uint256 id, uint256 keyId) private view returns (UsageKey storage key) {
        key = _usageKeys[keyId];
        if (key.accountId != id || !key.head.isSet(_accounts[id])) revert UnknownUsageKey(keyId);
    }

    function _atMost(uint256 value, uint256 max) private pure returns (uint256) {
        if (value > max) revert ValueTooLarge(value, max);
        return value;
    }

    // ------------------------------------------------------------------------------------------------------------ PKPs

    /// @inheritdoc IAccountCore
    function registerWalletDerivation(
        uint256 apiKeyHash,
        address pkpId,
        uint256 derivationPath,
        string calldata name,
        string calldata description
    ) external {
        uint256 id = _authorize(apiKeyHash, Scope.CreatePkps, 0);
        Addresses.requireSet(pkpId);
        uint256 kind = derivationPath >> 248;
        if (kind != KIND_PKP && kind != KIND_USAGE_KEY) revert UnknownPathKind(kind);
        if (uint128(derivationPath) != uint128(id)) revert ForeignDerivationPath(derivationPath, id);
        Texts.requireShort(name, description);
        Account storage account = _accounts[id];
        Wallet storage wallet = account.wallets[pkpId];
        if (wallet.pathHead != 0) {
            if (_pathOf(id, pkpId) != derivationPath) revert PkpTaken(pkpId);
            // The strings of a usage key's wallet are not stored: any are the same.
            if (kind == KIND_USAGE_KEY || account.pkpAt[wallet.column.index].isLabelled(name, description)) return;
            revert PkpTaken(pkpId);
        }

        wallet.pathHead = uint128(derivationPath >> 128);
        if (kind == KIND_PKP) {
            uint24 number = ++account.lastPkp;
            wallet.column.index = number;
            Pkp storage pkp = account.pkpAt[number];
            pkp.wallet = pkpId;
            pkp.label(name, description);
        }
        emit WalletDerivationRegistered(id, pkpId, derivationPath, name, description, apiKeyHash);
    }

    /// @inheritdoc IAccountCore
    function updatePkpMetadata(
        uint256 apiKeyHash,
        address pkpId,
        string calldata name,
        string calldata description
    ) external {
        uint256 id = _authorizeOwner(apiKeyHash);
        Pkp storage pkp = _accounts[id].pkpAt[_pkpNumber(id, pkpId)];

        if (pkp.label(name, description)) {
            emit PkpUpdated(id, pkpId, name, description, id);
        }
    }

    /// @inheritdoc IAccountCore
    function setPkpOps(uint256 id, address pkp, uint256 deniedOps) external {
        _pkpNumber(_authorizeOwner(id), pkp);
        Wallet storage wallet = _accounts[id].wallets[pkp];
        if (wallet.deniedOps == deniedOps) return;
        uint128 ops = uint128(_atMost(deniedOps, type(uint128).max));

        wallet.deniedOps = ops;
        emit PkpOpsSet(id, pkp, deniedOps, id);
    }

    function _pkpNumber(uint256 id, address pkpId) private view returns (uint256 number) {
        number = _accounts[id].wallets[pkpId].column.index;
        if (number == 0) revert UnknownPkp(pkpId);
    }

    // ---------------------------------------------------------------------------------------------------------- groups

    /// @inheritdoc IAccountCore
    function addGroup(
        uint256 apiKeyHash,
        string calldata name,
        string calldata description,
        uint256[] calldata cidHashes,
        address[] calldata pkpIds
    ) external returns (uint256 groupId) {
        uint256 id = _authorize(apiKeyHash, Scope.CreateGroups, 0);
        // On 0, every group: a key that may only create groups must not gain rights by filling the new one.
        if (cidHashes.length != 0) _authorize(apiKeyHash, Scope.ManageActions.unlessAny(cidHashes), 0);
        if (pkpIds.length != 0) _authorize(apiKeyHash, Scope.AddPkp.unlessAny(pkpIds), 0);

        Account storage account = _accounts[id];
        groupId = account.groupsThatExist.add();
        account.groups[groupId].label(name, description);
        emit GroupAdded(id, groupId, name, description, apiKeyHash);
        _addActions(id, apiKeyHash, groupId, cidHashes);
        _addPkps(id, apiKeyHash, groupId, pkpIds);
    }

    /// @inheritdoc IAccountCore
    function updateGroup(
        uint256 accountApiKeyHash,
        uint256 groupId,
        string calldata name,
        string calldata description,
        uint256[] calldata cidHashes,
        address[] calldata pkpIds
    ) external {
        uint256 id = _setGroupTexts(accountApiKeyHash, groupId, name, description);
        _dropActionsBut(id, groupId, _addActions(id, id, groupId, cidHashes));
        _dropPkpsBut(id, groupId, _addPkps(id, id, groupId, pkpIds));
    }

    /// @inheritdoc IAccountCore
    function updateGroupMetadata(
        uint256 accountApiKeyHash,
        uint256 groupId,
        string calldata name,
        string calldata description
    ) external {
        _setGroupTexts(accountApiKeyHash, groupId, name, description);
    }

    /// @inheritdoc IAccountCore
    function removeGroup(uint256 apiKeyHash, uint256 groupId) external {
        uint256 id = _authorize(apiKeyHash, Scope.DeleteGroups, 0);
        Account storage account = _accounts[id];
        _requireGroup(account, groupId);

        account.groupsThatExist.remove(groupId); // every read checks this set first: members may stay
        emit GroupRemoved(id, groupId, apiKeyHash);
    }

    /// @inheritdoc IAccountCore
    function changeGroupMembers(
        uint256 apiKeyHash,
        uint256 groupId,
        uint256[] calldata addActions,
        uint256[] calldata removeActions,
        address[] calldata addPkps,
        address[] calldata removePkps
    ) external {
        uint256 id = _authorizeChange(apiKeyHash, groupId, addActions, removeActions, addPkps, removePkps);
        _requireGroup(_accounts[id], groupId);

        _changeActions(id, apiKeyHash, groupId, addActions, removeActions);
        _changePkps(id, apiKeyHash, groupId, addPkps, removePkps);
    }

    /// @dev Requires the scope of each non-empty list. With empty lists only, requires the owner.
    function _authorizeChange(
        uint256 actor,
        uint256 groupId,
        uint256[] calldata addActions,
        uint256[] calldata removeActions,
        address[] calldata addPkps,
        address[] calldata removePkps
    ) private view returns (uint256 id) {
        if (addActions.length != 0) id = _authorize(actor, Scope.ManageActions.unlessAny(addActions), groupId);
        if (removeActions.length != 0) id = _authorize(actor, Scope.ManageActions.unlessAny(removeActions), groupId);
        if (addPkps.length != 0) id = _authorize(actor, Scope.AddPkp.unlessAny(addPkps), groupId);
        if (removePkps.length != 0) id = _authorize(actor, Scope.RemovePkp.unlessAny(removePkps), groupId);
        if (id == 0) id = _authorizeOwner(actor);
    }

    /// @inheritdoc IAccountCore
    function addActionToGroup(uint256 apiKeyHash, uint256 groupId, uint256 action) external {
        uint256 id = _authorize(apiKeyHash, Scope.ManageActions.unlessAny(action), groupId);
        _requireGroup(_accounts[id], groupId);

        _addAction(id, apiKeyHash, groupId, action);
    }

    /// @inheritdoc IAccountCore
    function removeActionFromGroup(uint256 apiKeyHash, uint256 groupId, uint256 action) external {
        uint256 id = _authorize(apiKeyHash, Scope.ManageActions.unlessAny(action), groupId);
        _requireGroup(_accounts[id], groupId);

        _removeAction(id, apiKeyHash, groupId, action);
    }

    /// @inheritdoc IAccountCore
    function addPkpToGroup(uint256 apiKeyHash, uint256 groupId, address pkpId) external {
        uint256 id = _authorize(apiKeyHash, Scope.AddPkp.unlessAny(pkpId), groupId);
        _requireGroup(_accounts[id], groupId);

        _addPkp(id, apiKeyHash, groupId, pkpId);
    }

    /// @inheritdoc IAccountCore
    function removePkpFromGroup(uint256 apiKeyHash, uint256 groupId, address pkpId) external {
        uint256 id = _authorize(apiKeyHash, Scope.RemovePkp.unlessAny(pkpId), groupId);
        _requireGroup(_accounts[id], groupId);

        _removePkp(id, apiKeyHash, groupId, pkpId);
    }

    function _setGroupTexts(
        uint256 actor,
        uint256 groupId,
        string calldata name,
        string calldata description
    ) private returns (uint256 id) {
        id = _authorizeOwner(actor);
        Account storage account = _accounts[id];
        _requireGroup(account, groupId);

        if (account.groups[groupId].label(name, description)) {
            emit GroupUpdated(id, groupId, name, description, id);
        }
    }

    // --------------------------------------------------------------------------------------------------------- actions

    /// @inheritdoc IAccountCore
    function addAction(
        uint256 accountApiKeyHash,
        string calldata name,
        string calldata description,
        uint256 actionHash
    ) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        if (actionHash == 0) revert ActionZero();

        (uint256 index, bool isNew) = _know(id, actionHash);
        bool changed = _accounts[id].actionAt[index].label(name, description);
        if (isNew) emit ActionAdded(id, actionHash, name, description, id);
        else if (changed) emit ActionUpdated(id, actionHash, name, description, id);
    }

    /// @inheritdoc IAccountCore
    function removeAction(uint256 accountApiKeyHash, uint256 actionHash) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        _forget(id, actionHash);
        emit ActionRemoved(id, actionHash, id);
    }

    /// @inheritdoc IAccountCore
    function updateActionMetadata(
        uint256 accountApiKeyHash,
        uint256 actionHash,
        uint256 groupId,
        string calldata name,
        string calldata description
    ) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        if (groupId != 0) _requireGroup(_accounts[id], groupId);
        Action storage action = _accounts[id].actionAt[_actionIndex(id, actionHash)];

        if (action.label(name, description)) {
            emit ActionUpdated(id, actionHash, name, description, id);
        }
    }
}
