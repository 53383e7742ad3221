// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {ERC2771Context} from "@openzeppelin/contracts/metatx/ERC2771Context.sol";
import {AccountDecisions} from "./AccountDecisions.sol";
import {ApiPayers} from "./ApiPayers.sol";
import {Batches} from "./Batches.sol";
import {Delegating} from "./Delegating.sol";
import {GroupMembers} from "./GroupMembers.sol";
import {IAccountManager} from "./interfaces/IAccountManager.sol"; // what this address answers, for its artifact
import {ITwoStepAdmin} from "./interfaces/ITwoStepAdmin.sol";
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
///   here run the code of `ApiPayers`, and behind that of `AccountLists`, on this contract's storage. In private
///   functions `id` is the account and `actor` the authenticated account id or usage key id.
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

    bytes32 public immutable keyNamespace;

    /// @param firstAdmin The contract admin, who appoints the API payers.
    /// @param delaySeconds The delay of a payer's addition once a managed account exists; at most a year.
    /// @param forwarder The ERC-2771 forwarder that owners may act through.
    constructor(
        address firstAdmin,
        uint256 delaySeconds,
        address forwarder
    ) ERC2771Context(forwarder) Delegating(address(new ApiPayers(delaySeconds, forwarder))) {
        if (forwarder == address(0)) revert ITwoStepAdmin.ZeroAddress();
        _requireAddress(firstAdmin);
        _admin = firstAdmin;
        emit ITwoStepAdmin.AdminChanged(address(0), firstAdmin);
        keyNamespace = keccak256(abi.encode("keywright/v1", block.chainid, address(this)));
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
        Subject memory subject = _subject(actor);
        id = subject.accountId;
        if (id == 0) revert UnknownAccount(actor);
        if (!_isManaged(_accounts[id])) revert AccountChainSecured(id);
        if (subject.denial == DenialReason.UnknownKey) revert UnknownUsageKey(actor);
        if (subject.denial == DenialReason.KeyExpired) revert KeyExpired(actor);
        asOwner = subject.isAccountKey;
        if (subject.frozen && !asOwner) revert AccountFrozen(id);
    }

    function _isOwner(uint256 id) private view returns (bool) {
        address owner = _accounts[id].owner;
        return owner != address(0) && owner == _msgSender();
    }

    function _authorizeOwner(uint256 actor) private view returns (uint256 id) {
        return _authorize(actor, Scope.OwnerOnly, 0);
    }

    // -------------------------------------------------------------------------------------------------------- accounts

    function newAccount(
        uint256 apiKeyHash,
        bool managed,
        string calldata name,
        string calldata description,
        address adminWalletAddress
    ) external {
        address caller = _msgSender();
        if (managed ? !_isApiPayer(msg.sender) : caller != adminWalletAddress) revert NotAuthorized(caller);
        if (!managed && apiKeyHash != _packedId(caller)) revert ForeignAccountId(apiKeyHash, _packedId(caller));
        if (managed && !_payers.managedAccountExists) _payers.managedAccountExists = true;
        _create(apiKeyHash, managed, name, description, adminWalletAddress);
    }

    function newChainSecuredAccount(string calldata name, string calldata description) external {
        _create(_packedId(_msgSender()), false, name, description, _msgSender());
    }

    function convertToChainSecuredAccount(uint256 apiKeyHash, address newAdminWalletAddress) external {
        uint256 id = _authorizeOwner(apiKeyHash);
        if (!_isManaged(_accounts[id])) revert AccountChainSecured(id);
        address oldAdmin = _handOver(id, newAdminWalletAddress);
        emit AccountConvertedToChainSecured(id, oldAdmin, newAdminWalletAddress, apiKeyHash);
    }

    function transferOwnership(uint256 apiKeyHash, address newOwner) external {
        uint256 id = _authorizeOwner(apiKeyHash);
        address oldOwner = _handOver(id, newOwner);
        if (newOwner == oldOwner) revert SameOwner(newOwner);
        emit AccountOwnershipTransferred(id, oldOwner, newOwner, apiKeyHash);
    }

    function updateAccountMetadata(uint256 apiKeyHash, string calldata name, string calldata description) external {
        uint256 id = _authorizeOwner(apiKeyHash);
        if (_accounts[id].label(name, description)) emit AccountUpdated(id, name, description, apiKeyHash);
    }

    function setAccountFrozen(uint256 id, bool frozen) external {
        Account storage account = _accounts[_authorizeOwner(id)];
        if (_isFrozen(account) == frozen) return;
        account.flags ^= FROZEN;
        emit AccountFreezeSet(id, frozen, id);
    }

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
        Account storage account = _accounts[id];
        if (id == 0) revert ZeroId();
        _requireOwnable(owner);
        if (account.owner != address(0)) revert AccountIdTaken(id);
        account.owner = owner;
        if (managed) account.flags = MANAGED;
        account.label(name, description);
        emit AccountCreated(id, owner, managed, name, description, id);
    }

    /// @dev Replaces the owner. The account is ChainSecured afterwards.
    function _handOver(uint256 id, address newOwner) private returns (address oldOwner) {
        _requireOwnable(newOwner);
        oldOwner = _accounts[id].owner;
        _accounts[id].owner = newOwner;
        _accounts[id].flags &= ~MANAGED;
    }

    function _requireOwnable(address owner) private view {
        if (owner == address(this)) revert OwnerIsThisContract();
        _requireAddress(owner);
    }

    /// @dev Rejects addresses that cannot hold a role: zero, and the forwarder, through which anyone can call.
    function _requireAddress(address given) private view {
        if (given == address(0)) revert ITwoStepAdmin.ZeroAddress();
        if (given == trustedForwarder()) revert ForwarderNotAllowed(given);
    }

    function _packedId(address wallet) private pure returns (uint256) {
        return uint256(keccak256(abi.encodePacked(wallet)));
    }

    // ------------------------------------------------------------------------------------------------------ usage keys

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
        bool isNew = key.claim(_accounts[id], id, usageApiKeyHash);
        if (key.setValues(wanted, name, description) || isNew) {
            emit UsageApiKeySet(
                id,
                usageApiKeyHash,
                expiration,
                balance,
                name,
                description,
                wanted.flags,
                accountApiKeyHash
            );
        }
        uint256[][4] memory lists;
        uint256 lastId = _accounts[id].groupsThatExist.lastId;
        lists[0] = GroupSets.fromList(manageIPFSIdsInGroups, lastId);
        lists[1] = GroupSets.fromList(addPkpToGroups, lastId);
        lists[2] = GroupSets.fromList(removePkpFromGroups, lastId);
        lists[3] = GroupSets.fromList(executeInGroups, lastId);
        if (key.setLists(lists) || isNew) {
            emit UsageApiKeyScopesSet(
                id,
                usageApiKeyHash,
                manageIPFSIdsInGroups,
                addPkpToGroups,
                removePkpFromGroups,
                executeInGroups,
                accountApiKeyHash
            );
        }
    }

    function updateUsageApiKeyMetadata(
        uint256 accountApiKeyHash,
        uint256 usageApiKeyHash,
        string calldata name,
        string calldata description
    ) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        if (_usageKeyOf(id, usageApiKeyHash).label(name, description)) {
            emit UsageApiKeyUpdated(id, usageApiKeyHash, name, description, accountApiKeyHash);
        }
    }

    function removeUsageApiKey(uint256 accountApiKeyHash, uint256 usageApiKeyHash) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        _usageKeyOf(id, usageApiKeyHash);
        _usageKeys.remove(_accounts[id], usageApiKeyHash);
        emit UsageApiKeyRemoved(id, usageApiKeyHash, accountApiKeyHash);
    }

    function revokeAllUsageApiKeys(uint256 id) external {
        Account storage account = _accounts[_authorizeOwner(id)];
        if (account.usageKeys[account.epoch].length == 0) return;
        account.epoch = uint24(_atMost(account.epoch + 1, type(uint24).max));
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

    function registerWalletDerivation(
        uint256 apiKeyHash,
        address pkpId,
        uint256 derivationPath,
        string calldata name,
        string calldata description
    ) external {
        uint256 id = _authorize(apiKeyHash, Scope.CreatePkps, 0);
        if (pkpId == address(0)) revert ITwoStepAdmin.ZeroAddress();
        uint256 kind = derivationPath >> 248;
        if (kind != KIND_PKP && kind != KIND_USAGE_KEY) revert UnknownPathKind(kind);
        if (uint128(derivationPath) != uint128(id)) revert ForeignDerivationPath(derivationPath, id);
        Texts.requireShort(name, description);

        Wallet storage wallet = _accounts[id].wallets[pkpId];
        if (wallet.pathHead != 0) {
            if (_pathOf(id, pkpId) != derivationPath) revert PkpTaken(pkpId);
            if (kind == KIND_PKP && _accounts[id].pkpAt[wallet.column.index].label(name, description)) {
                revert PkpTaken(pkpId);
            }
            return;
        }
        wallet.pathHead = uint128(derivationPath >> 128);
        if (kind == KIND_PKP) {
            uint24 number = ++_accounts[id].lastPkp;
            wallet.column.index = number;
            _accounts[id].pkpAt[number].wallet = pkpId;
            _accounts[id].pkpAt[number].label(name, description);
        }
        emit WalletDerivationRegistered(id, pkpId, derivationPath, name, description, apiKeyHash);
    }

    function updatePkpMetadata(
        uint256 apiKeyHash,
        address pkpId,
        string calldata name,
        string calldata description
    ) external {
        uint256 id = _authorizeOwner(apiKeyHash);
        if (_accounts[id].pkpAt[_pkpNumber(id, pkpId)].label(name, description)) {
            emit PkpUpdated(id, pkpId, name, description, apiKeyHash);
        }
    }

    function setPkpOps(uint256 id, address pkp, uint256 deniedOps) external {
        _pkpNumber(_authorizeOwner(id), pkp);
        Wallet storage wallet = _accounts[id].wallets[pkp];
        if (wallet.deniedOps == deniedOps) return;
        wallet.deniedOps = uint128(_atMost(deniedOps, type(uint128).max));
        emit PkpOpsSet(id, pkp, deniedOps, id);
    }

    function _pkpNumber(uint256 id, address pkpId) private view returns (uint256 number) {
        number = _accounts[id].wallets[pkpId].column.index;
        if (number == 0) revert UnknownPkp(pkpId);
    }

    // ---------------------------------------------------------------------------------------------------------- groups

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

    function updateGroup(
        uint256 accountApiKeyHash,
        uint256 groupId,
        string calldata name,
        string calldata description,
        uint256[] calldata cidHashes,
        address[] calldata pkpIds
    ) external {
        uint256 id = _setGroupTexts(accountApiKeyHash, groupId, name, description);
        _dropActionsBut(id, accountApiKeyHash, groupId, _addActions(id, accountApiKeyHash, groupId, cidHashes));
        _dropPkpsBut(id, accountApiKeyHash, groupId, _addPkps(id, accountApiKeyHash, groupId, pkpIds));
    }

    function updateGroupMetadata(
        uint256 accountApiKeyHash,
        uint256 groupId,
        string calldata name,
        string calldata description
    ) external {
        _setGroupTexts(accountApiKeyHash, groupId, name, description);
    }

    function removeGroup(uint256 apiKeyHash, uint256 groupId) external {
        uint256 id = _authorize(apiKeyHash, Scope.DeleteGroups, 0);
        Account storage account = _accounts[id];
        _requireGroup(account, groupId);
        account.groupsThatExist.remove(groupId); // every read checks this set first: members may stay
        emit GroupRemoved(id, groupId, apiKeyHash);
    }

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

    function addActionToGroup(uint256 apiKeyHash, uint256 groupId, uint256 action) external {
        uint256 id = _authorize(apiKeyHash, Scope.ManageActions.unlessAny(action), groupId);
        _requireGroup(_accounts[id], groupId);
        _addAction(id, apiKeyHash, groupId, action);
    }

    function removeActionFromGroup(uint256 apiKeyHash, uint256 groupId, uint256 action) external {
        uint256 id = _authorize(apiKeyHash, Scope.ManageActions.unlessAny(action), groupId);
        _requireGroup(_accounts[id], groupId);
        _removeAction(id, apiKeyHash, groupId, action);
    }

    function addPkpToGroup(uint256 apiKeyHash, uint256 groupId, address pkpId) external {
        uint256 id = _authorize(apiKeyHash, Scope.AddPkp.unlessAny(pkpId), groupId);
        _requireGroup(_accounts[id], groupId);
        _addPkp(id, apiKeyHash, groupId, pkpId);
    }

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
            emit GroupUpdated(id, groupId, name, description, actor);
        }
    }

    // --------------------------------------------------------------------------------------------------------- actions

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
        if (isNew) emit ActionAdded(id, actionHash, name, description, accountApiKeyHash);
        else if (changed) emit ActionUpdated(id, actionHash, name, description, accountApiKeyHash);
    }

    function removeAction(uint256 accountApiKeyHash, uint256 actionHash) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        _forget(id, actionHash);
        emit ActionRemoved(id, actionHash, accountApiKeyHash);
    }

    function updateActionMetadata(
        uint256 accountApiKeyHash,
        uint256 actionHash,
        uint256 groupId,
        string calldata name,
        string calldata description
    ) external {
        uint256 id = _authorizeOwner(accountApiKeyHash);
        if (groupId != 0) _requireGroup(_accounts[id], groupId);
        if (_accounts[id].actionAt[_actionIndex(id, actionHash)].label(name, description)) {
            emit ActionUpdated(id, actionHash, name, description, accountApiKeyHash);
        }
    }
}
