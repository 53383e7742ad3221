// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {AccountRules} from "./AccountRules.sol";
import {IAccountLists} from "./interfaces/IAccountLists.sol";
import {Bits, NumberSet} from "./libraries/Bits.sol";
import {GROUPS_PER_WORD, GroupList, GroupRegister, GroupSets} from "./libraries/GroupSets.sol";
import {INDEXES_PER_WORD, Rows} from "./libraries/Rows.sol";
import {Text, Texts} from "./libraries/Texts.sol";
import {UsageKeys} from "./libraries/UsageKeys.sol";
import {
    Account,
    Action,
    CREATE_GROUPS,
    CREATE_PKPS,
    DELETE_GROUPS,
    Group,
    KeyHead,
    Pkp,
    UsageKey
} from "./types/AccountStorage.sol";
import {
    AccountInfo,
    ActionInfo,
    DenialReason,
    GroupInfo,
    KeyInfo,
    PkpInfo,
    Scope,
    UsageApiKeyInfo
} from "./types/AccountTypes.sol";

/// @title Views of keys, records and lists
/// @notice Runs by delegatecall on `AccountManager`'s storage: unknown calls end here. Read-only: every function is a
///   view, and a test searches the bytecode for writing instructions. Its own storage is empty.
contract AccountLists is AccountRules, IAccountLists {
    using Bits for NumberSet;
    using GroupSets for GroupRegister;
    using GroupSets for GroupList;
    using Rows for mapping(uint256 => uint256);
    using Texts for Text;
    using UsageKeys for KeyHead;

    uint256 private constant MAX_PAGE = 1000;
    uint256 private constant MAX_KEY_PAGE = 200;

    // ------------------------------------------------------------------------------------------------------------ keys

    /// @inheritdoc IAccountLists
    function hasScope(uint256 key, uint8 number, uint256 groupId) external view returns (bool) {
        Subject memory subject = _subject(key);
        if (number > uint8(type(Scope).max) || subject.denial != DenialReason.None || subject.frozen) return false;
        Scope scope = Scope(number);
        bool accountWide = scope == Scope.CreatePkps || scope == Scope.CreateGroups || scope == Scope.DeleteGroups;
        if (!accountWide && groupId != 0 && !_accounts[subject.accountId].groupsThatExist.has(groupId)) return false;
        return subject.isAccountKey || _holds(_usageKeys[key], scope, groupId);
    }

    /// @inheritdoc IAccountLists
    function accountOf(uint256 key) external view returns (uint256) {
        return _subject(key).accountId;
    }

    /// @inheritdoc IAccountLists
    function getKey(uint256 key) external view returns (KeyInfo memory info) {
        Subject memory subject = _subject(key);
        Account storage account = _accounts[subject.accountId];
        info.accountId = subject.accountId;
        info.isAccountKey = subject.isAccountKey;
        info.live = subject.denial == DenialReason.None;
        info.managed = _isManaged(account);
        info.owner = account.owner;
        info.frozen = subject.frozen;
        if (!subject.isAccountKey && subject.denial != DenialReason.UnknownKey) {
            info.expiration = _usageKeys[key].head.expiration;
            info.balance = _usageKeys[key].head.balance;
        }
    }

    // --------------------------------------------------------------------------------------------------------- records

    /// @inheritdoc IAccountLists
    function getAccount(uint256 id) external view returns (AccountInfo memory info) {
        Account storage account = _known(id);
        info.id = id;
        info.adminWalletAddress = account.owner;
        info.managed = _isManaged(account);
        info.frozen = _isFrozen(account);
        (info.name, info.description) = account.text.get(account.lengths);
        info.groupCount = _groups(account).size();
        info.actionCount = _actions(account).size();
        info.pkpCount = account.lastPkp;
        info.usageApiKeyCount = account.usageKeys[account.epoch].length;
        info.lastGroupId = account.groupsThatExist.lastId;
    }

    /// @inheritdoc IAccountLists
    function getUsageApiKey(uint256 key) public view returns (UsageApiKeyInfo memory info) {
        UsageKey storage stored = _usageKeys[key];
        KeyHead memory head = stored.head;
        if (!stored.head.isSet(_accounts[stored.accountId])) revert UnknownUsageKey(key);
        info.id = key;
        info.accountId = stored.accountId;
        info.expiration = head.expiration;
        info.balance = head.balance;
        (info.name, info.description) = stored.text.get(head.lengths);
        info.createGroups = head.flags & CREATE_GROUPS != 0;
        info.deleteGroups = head.flags & DELETE_GROUPS != 0;
        info.createPKPs = head.flags & CREATE_PKPS != 0;
        info.manageIPFSIdsInGroups = _listOf(stored, head, Scope.ManageActions);
        info.addPkpToGroups = _listOf(stored, head, Scope.AddPkp);
        info.removePkpFromGroups = _listOf(stored, head, Scope.RemovePkp);
        info.executeInGroups = _listOf(stored, head, Scope.Execute);
    }

    /// @inheritdoc IAccountLists
    function getGroup(uint256 id, uint256 groupId) external view returns (GroupInfo memory) {
        Account storage account = _known(id);
        _requireGroup(account, groupId);
        return _groupInfo(account, groupId);
    }

    /// @inheritdoc IAccountLists
    function getWalletDerivation(uint256 id, address wallet) external view returns (uint256) {
        return _pathOf(id, wallet);
    }

    /// @inheritdoc IAccountLists
    function pkpByNumber(uint256 id, uint256 number) external view returns (address) {
        Account storage account = _known(id);
        if (number == 0 || number > account.lastPkp) revert UnknownPkpNumber(number);
        return account.pkpAt[number].wallet;
    }

    // ----------------------------------------------------------------------------------------------------------- lists

    /// @inheritdoc IAccountLists
    function listGroups(
        uint256 id,
        uint256 offset,
        uint256 limit
    ) external view returns (GroupInfo[] memory items, uint256 total) {
        Account storage account = _known(id);
        uint256[] memory ids;
        (ids, total) = _page(_groups(account), offset, limit);
        items = new GroupInfo[](ids.length);
        for (uint256 i = 0; i < ids.length; i++) items[i] = _groupInfo(account, ids[i]);
    }

    /// @inheritdoc IAccountLists
    function listActions(
        uint256 id,
        uint256 offset,
        uint256 limit
    ) external view returns (ActionInfo[] memory items, uint256 total) {
        Account storage account = _known(id);
        return _actionPage(account, _actions(account), offset, limit);
    }

    /// @inheritdoc IAccountLists
    function listActionsInGroup(
        uint256 id,
        uint256 groupId,
        uint256 offset,
        uint256 limit
    ) external view returns (ActionInfo[] memory items, uint256 total) {
        Account storage account = _known(id);
        _requireGroup(account, groupId);
        return _actionPage(account, _actionsIn(account, groupId), offset, limit);
    }

    /// @inheritdoc IAccountLists
    function listPkps(
        uint256 id,
        uint256 offset,
        uint256 limit
    ) external view returns (PkpInfo[] memory items, uint256 total) {
        Account storage account = _known(id);
        total = account.lastPkp;
        uint256[] memory numbers = new uint256[](_itemsOn(offset, limit, MAX_PAGE, total));
        for (uint256 i = 0; i < numbers.length; i++) numbers[i] = offset + i + 1;
        items = _pkpInfos(id, numbers);
    }

    /// @inheritdoc IAccountLists
    function listPkpsInGroup(
        uint256 id,
        uint256 groupId,
        uint256 offset,
        uint256 limit
    ) external view returns (PkpInfo[] memory items, uint256 total) {
        Account storage account = _known(id);
        _requireGroup(account, groupId);
        uint256[] memory numbers;
        (numbers, total) = _page(_pkpsIn(account, groupId), offset, limit);
        items = _pkpInfos(id, numbers);
    }

    /// @inheritdoc IAccountLists
    function listUsageApiKeys(
        uint256 id,
        uint256 offset,
        uint256 limit
    ) external view returns (UsageApiKeyInfo[] memory items, uint256 total) {
        Account storage account = _known(id);
        uint256[] storage keys = account.usageKeys[account.epoch];
        total = keys.length;
        items = new UsageApiKeyInfo[](_itemsOn(offset, limit, MAX_KEY_PAGE, total));
        for (uint256 i = 0; i < items.length; i++) items[i] = getUsageApiKey(keys[offset + i]);
    }

    // --------------------------------------------------------------------------------------------------------- helpers

    function _known(uint256 id) private view returns (Account storage account) {
        account = _accounts[id];
        if (account.owner == address(0)) revert UnknownAccount(id);
    }

    /// @dev The indexes of the actions a group lists. Rows keep retired indexes; they are removed here.
    function _actionsIn(Account storage account, uint256 groupId) internal view returns (NumberSet memory set) {
        Group storage group = account.groups[groupId];
        set = group.actionRow.load(group.actionPages, account.lastAction);
        for (uint256 i = 0; i < set.words.length; i++) {
            if (set.words[i] != 0) set.words[i] &= _liveWord(account, i);
        }
    }

    function _pkpsIn(Account storage account, uint256 groupId) internal view returns (NumberSet memory) {
        Group storage group = account.groups[groupId];
        return group.pkpRow.load(group.pkpPages, account.lastPkp);
    }

    function _page(
        NumberSet memory set,
        uint256 offset,
        uint256 limit
    ) private pure returns (uint256[] memory numbers, uint256 total) {
        total = set.size();
        numbers = set.page(offset, _itemsOn(offset, limit, MAX_PAGE, total));
    }

    /// @dev How many items a page has.
    function _itemsOn(uint256 offset, uint256 limit, uint256 max, uint256 total) private pure returns (uint256) {
        if (limit > max) revert PageTooLarge(limit, max);
        return offset < total ? Math.min(limit, total - offset) : 0;
    }

    function _groups(Account storage account) private view returns (NumberSet memory set) {
        set = Bits.empty(GROUPS_PER_WORD, account.groupsThatExist.lastId);
        for (uint256 i = 0; i < set.words.length; i++) set.words[i] = account.groupsThatExist.at(i);
    }

    function _actions(Account storage account) private view returns (NumberSet memory set) {
        set = Bits.empty(INDEXES_PER_WORD, account.lastAction);
        for (uint256 i = 0; i < set.words.length; i++) set.words[i] = account.liveActions[i];
    }

    function _listOf(UsageKey storage key, KeyHead memory head, Scope scope) private view returns (uint256[] memory) {
        NumberSet memory set = NumberSet(GROUPS_PER_WORD, new uint256[](head.wordCount));
        for (uint256 i = 0; i < set.words.length; i++) set.words[i] = key.lists[scope].at(head.generation, i);
        return set.page(0, set.size());
    }

    function _groupInfo(Account storage account, uint256 groupId) private view returns (GroupInfo memory info) {
        Group storage group = account.groups[groupId];
        info.id = groupId;
        (info.name, info.description) = group.text.get(group.lengths);
        for (uint256 i = 0; i <= account.lastPkp / INDEXES_PER_WORD; i++) {
            if (Rows.mayFill(group.pkpPages, i)) info.pkpCount += Bits.count(group.pkpRow[i]);
        }
        for (uint256 i = 0; i <= account.lastAction / INDEXES_PER_WORD; i++) {
            if (Rows.mayFill(group.actionPages, i))
                info.actionCount += Bits.count(group.actionRow[i] & _liveWord(account, i));
        }
    }

    function _actionPage(
        Account storage account,
        NumberSet memory set,
        uint256 offset,
        uint256 limit
    ) private view returns (ActionInfo[] memory items, uint256 total) {
        uint256[] memory indexes;
        (indexes, total) = _page(set, offset, limit);
        items = new ActionInfo[](indexes.length);
        for (uint256 i = 0; i < indexes.length; i++) {
            Action storage action = account.actionAt[indexes[i]];
            items[i].actionHash = action.hash;
            (items[i].name, items[i].description) = action.text.get(action.lengths);
        }
    }

    function _pkpInfos(uint256 id, uint256[] memory numbers) private view returns (PkpInfo[] memory items) {
        Account storage account = _accounts[id];
        items = new PkpInfo[](numbers.length);
        for (uint256 i = 0; i < numbers.length; i++) {
            PkpInfo memory info = items[i];
            Pkp storage pkp = account.pkpAt[numbers[i]];
            info.number = numbers[i];
            info.pkpId = pkp.wallet;
            info.derivationPath = _pathOf(id, pkp.wallet);
            info.deniedOps = account.wallets[pkp.wallet].deniedOps;
            (info.name, info.description) = pkp.text.get(pkp.lengths);
        }
    }
}
