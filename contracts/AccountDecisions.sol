// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ApiPayers} from "./ApiPayers.sol";
import {Column, GroupList, GroupRegister, GroupSets} from "./libraries/GroupSets.sol";
import {Account, KeyHead, UsageKey, Wallet} from "./types/AccountStorage.sol";
import {DenialReason, KeyInfo, Scope} from "./types/AccountTypes.sol";

/// @title What is stored, and every decision about it
/// @notice A decision is an AND of words: groups in which the key executes ∧ groups that exist ∧ groups that list the action ∧ groups
/// that list the PKP, 224 groups at a time.
abstract contract AccountDecisions is ApiPayers {
    using GroupSets for GroupRegister;
    using GroupSets for Column;
    using GroupSets for GroupList;

    uint8 internal constant CREATE_GROUPS = 1;
    uint8 internal constant DELETE_GROUPS = 2;
    uint8 internal constant CREATE_PKPS = 4;

    mapping(uint256 id => Account) internal _accounts;
    mapping(uint256 key => UsageKey) internal _usageKeys;
    mapping(address wallet => Wallet) internal _wallets;

    /// @dev A key as a decision sees it. `denial` says why it cannot act at all.
    struct Subject {
        uint256 accountId;
        bool isAccountKey;
        DenialReason denial;
        uint32 generation; // of a usage key's lists
    }

    struct Verdict {
        bool keyExecutes; // in some existing group
        bool actionListed; // by one of these
        bool allowed;
        bool byName;
    }

    // --------------------------------------------------------------------------------------------------------- decisions

    function canExecuteAction(uint256 key, uint256 cid) external view returns (bool) {
        (DenialReason reason, , ) = _decide(key, cid, address(0));
        return reason == DenialReason.None;
    }

    function canUseWalletInAction(uint256 key, uint256 cid, address pkp) external view returns (bool) {
        (DenialReason reason, , ) = _decide(key, cid, pkp);
        return reason == DenialReason.None && pkp != address(0);
    }

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
        )
    {
        (reason, actionByName, accountId) = _decide(key, cid, pkp);
        allowed = reason == DenialReason.None;
        if (_isPkpOf(pkp, accountId)) derivationPath = _wallets[pkp].derivationPath;
        (blockNumber, blockTimestamp) = (block.number, block.timestamp);
    }

    function hasScope(uint256 key, Scope scope, uint256 groupId) external view returns (bool) {
        Subject memory subject = _subject(key);
        if (subject.denial != DenialReason.None) return false;
        bool accountWide = scope == Scope.CreatePkps || scope == Scope.CreateGroups || scope == Scope.DeleteGroups;
        if (!accountWide && groupId != 0 && !_accounts[subject.accountId].groupsThatExist.has(groupId)) return false;
        return subject.isAccountKey || _holds(_usageKeys[key], scope, groupId);
    }

    function accountOf(uint256 key) external view returns (uint256) {
        return _subject(key).accountId;
    }

    function getKey(uint256 key) external view returns (KeyInfo memory info) {
        Subject memory subject = _subject(key);
        info.accountId = subject.accountId;
        info.isAccountKey = subject.isAccountKey;
        info.live = subject.denial == DenialReason.None;
        info.managed = _accounts[subject.accountId].managed;
        info.owner = _accounts[subject.accountId].owner;
        if (!subject.isAccountKey) {
            info.expiration = _usageKeys[key].head.expiration;
            info.balance = _usageKeys[key].head.balance;
        }
    }

    // ------------------------------------------------------------------------------------------------------ what they ask

    /// @dev The one place that knows what a key is and whether it acts. An account goes before a usage key of the same id.
    function _subject(uint256 id) internal view returns (Subject memory subject) {
        Account storage account = _accounts[id];
        if (account.owner != address(0)) {
            subject.accountId = id;
            subject.isAccountKey = true;
            if (!account.managed) subject.denial = DenialReason.AccountChainSecured;
            return subject;
        }
        UsageKey storage key = _usageKeys[id];
        subject.accountId = key.accountId;
        KeyHead memory head = key.head;
        subject.generation = head.generation;
        if (head.position == 0) subject.denial = DenialReason.UnknownKey;
        else if (head.expiration != 0 && block.timestamp >= head.expiration) subject.denial = DenialReason.KeyExpired;
    }

    /// @dev Does a usage key hold a scope: on the group, or on all of them? Whether it is live, and whether the group exists, is asked elsewhere.
    function _holds(UsageKey storage key, Scope scope, uint256 groupId) internal view returns (bool) {
        if (scope == Scope.OwnerOnly) return false;
        KeyHead memory head = key.head;
        if (scope == Scope.CreateGroups) return head.flags & CREATE_GROUPS != 0;
        if (scope == Scope.DeleteGroups) return head.flags & DELETE_GROUPS != 0;
        if (scope == Scope.CreatePkps) return head.flags & CREATE_PKPS != 0;
        return key.lists[scope].has(head.generation, 0) || key.lists[scope].has(head.generation, groupId);
    }

    function _isPkpOf(address wallet, uint256 accountId) internal view returns (bool) {
        Wallet storage registered = _wallets[wallet];
        return wallet != address(0) && registered.accountId == accountId && registered.column.index != 0;
    }

    /// @dev The one answer behind all three questions. `pkp` zero asks about key and action only.
    function _decide(uint256 key, uint256 cid, address pkp) private view returns (DenialReason reason, bool byName, uint256 accountId) {
        Subject memory subject = _subject(key);
        accountId = subject.accountId;
        if (subject.denial != DenialReason.None) return (subject.denial, false, accountId);
        bool pkpUnknown = pkp != address(0) && !_isPkpOf(pkp, accountId);
        Verdict memory verdict = _judge(key, subject, cid, pkpUnknown ? address(0) : pkp);
        reason = _reason(verdict, cid, pkpUnknown);
        byName = verdict.byName && reason == DenialReason.None;
    }

    /// @dev Looks through the groups of the account, a word of 224 at a time, until one allows it that lists the action by name.
    function _judge(uint256 key, Subject memory subject, uint256 cid, address pkp) private view returns (Verdict memory verdict) {
        Account storage account = _accounts[subject.accountId];
        GroupList storage list = _usageKeys[key].lists[Scope.Execute];
        bool everywhere = subject.isAccountKey || list.has(subject.generation, 0);
        uint256 words = account.groupsThatExist.wordCount();
        Column storage action = account.actions[cid];
        Column storage wallet = _wallets[pkp].column;
        (uint256 actionIndex, uint256 pkpIndex) = (action.index, wallet.index);
        for (uint256 i = 0; i < words && !verdict.byName; i++) {
            uint256 groups = account.groupsThatExist.at(i);
            if (!everywhere) groups &= list.at(subject.generation, i);
            if (groups == 0) continue;
            verdict.keyExecutes = true;
            uint256 byName = groups & action.at(actionIndex, i);
            uint256 withPkp = pkp == address(0) ? groups : groups & wallet.at(pkpIndex, i);
            if (byName & withPkp == 0) {
                // else what lists "any" makes no difference
                groups &= byName | account.actions[0].at(0, i);
                if (groups == 0) continue;
                if (pkp != address(0)) withPkp |= account.anyPkp.at(0, i);
            }
            verdict.actionListed = true;
            if (groups & withPkp != 0) verdict.allowed = true;
            if (byName & withPkp != 0) verdict.byName = true;
        }
    }

    /// @dev The first rule that failed. No CID has the hash 0: it is only a word inside groups.
    function _reason(Verdict memory verdict, uint256 cid, bool pkpUnknown) private pure returns (DenialReason) {
        if (!verdict.keyExecutes) return DenialReason.NoExecuteScope;
        if (!verdict.actionListed || cid == 0) return DenialReason.ActionNotPermitted;
        if (pkpUnknown) return DenialReason.UnknownPkp;
        return verdict.allowed ? DenialReason.None : DenialReason.PkpNotPermitted;
    }
}
