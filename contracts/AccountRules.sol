// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {EnumerableMap} from "@openzeppelin/contracts/utils/structs/EnumerableMap.sol";
import {IAccountErrors} from "./interfaces/IAccountErrors.sol";
import {GroupList, GroupRegister, GroupSets} from "./libraries/GroupSets.sol";
import {UsageKeys} from "./libraries/UsageKeys.sol";
import {
    Account,
    AccountStorage,
    CREATE_GROUPS,
    CREATE_PKPS,
    DELETE_GROUPS,
    FROZEN,
    KeyHead,
    MANAGED,
    UsageKey
} from "./types/AccountStorage.sol";
import {DenialReason, Scope} from "./types/AccountTypes.sol";

/// @title Storage rules shared by writes, decisions and lists
abstract contract AccountRules is AccountStorage {
    using EnumerableMap for EnumerableMap.AddressToUintMap;
    using GroupSets for GroupRegister;
    using GroupSets for GroupList;
    using UsageKeys for KeyHead;

    /// @dev A key's state for a decision. `denial` is why it is not live; a live key of a frozen account cannot act
    ///   either.
    struct Subject {
        uint256 accountId;
        bool isAccountKey;
        bool frozen;
        DenialReason denial;
        uint32 generation; // of a usage key's lists
    }

    /// @dev Resolves a key and whether it is live, for every caller. An account takes precedence over a usage key of
    ///   the same id.
    function _subject(uint256 id) internal view returns (Subject memory subject) {
        Account storage account = _accounts[id];
        if (account.owner != address(0)) {
            subject.accountId = id;
            subject.isAccountKey = true;
            subject.frozen = _isFrozen(account);
            if (!_isManaged(account)) subject.denial = DenialReason.AccountChainSecured;
            return subject;
        }
        UsageKey storage key = _usageKeys[id];
        subject.accountId = key.accountId;
        account = _accounts[subject.accountId];
        subject.frozen = _isFrozen(account);
        subject.generation = key.head.generation;
        uint256 expiration = key.head.expiration;
        if (!key.head.isSet(account)) subject.denial = DenialReason.UnknownKey;
        else if (expiration != 0 && block.timestamp >= expiration) subject.denial = DenialReason.KeyExpired;
    }

    /// @dev Whether a usage key holds a scope: on the group, or on all of them. Liveness and the group's existence are
    ///   checked elsewhere.
    function _holds(UsageKey storage key, Scope scope, uint256 groupId) internal view returns (bool) {
        if (scope == Scope.OwnerOnly) return false;
        uint8 flags = key.head.flags;
        if (scope == Scope.CreateGroups) return flags & CREATE_GROUPS != 0;
        if (scope == Scope.DeleteGroups) return flags & DELETE_GROUPS != 0;
        if (scope == Scope.CreatePkps) return flags & CREATE_PKPS != 0;
        GroupList storage list = key.lists[scope];
        uint32 generation = key.head.generation;
        return list.has(generation, 0) || list.has(generation, groupId);
    }

    function _isManaged(Account storage account) internal view returns (bool) {
        return account.flags & MANAGED != 0;
    }

    function _isFrozen(Account storage account) internal view returns (bool) {
        return account.flags & FROZEN != 0;
    }

    function _isPkp(Account storage account, address wallet) internal view returns (bool) {
        return account.wallets[wallet].column.index != 0;
    }

    /// @dev The path of a registered wallet, else 0.
    function _pathOf(uint256 id, address wallet) internal view returns (uint256) {
        uint256 head = _accounts[id].wallets[wallet].pathHead;
        return head == 0 ? 0 : (head << 128) | uint128(id);
    }

    function _isApiPayer(address caller) internal view returns (bool) {
        (bool added, uint256 activeFrom) = _payers.activeFrom.tryGet(caller);
        return added && block.timestamp >= activeFrom;
    }

    function _requireGroup(Account storage account, uint256 groupId) internal view {
        if (groupId == 0) revert IAccountErrors.GroupZero();
        if (!account.groupsThatExist.has(groupId)) revert IAccountErrors.UnknownGroup(groupId);
    }

    /// @dev The indexes of actions that are not retired, and index 0, "any".
    function _liveWord(Account storage account, uint256 word) internal view returns (uint256) {
        return account.liveActions[word] | (word == 0 ? 1 : 0);
    }
}
