// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {AccountRules} from "./AccountRules.sol";
import {IAccountCore} from "./interfaces/IAccountCore.sol";
import {Bits, NumberSet} from "./libraries/Bits.sol";
import {Column, GroupSets} from "./libraries/GroupSets.sol";
import {INDEXES_PER_WORD, Rows} from "./libraries/Rows.sol";
import {Account, Group} from "./types/AccountStorage.sol";

/// @title Group members
/// @notice Membership is stored both ways: item → groups for decisions, group → items for lists. Callers are authorized
///   before.
/// @dev `id` is the account, `actor` the authenticated account id or usage key id.
abstract contract GroupMembers is AccountRules, IAccountCore {
    using Bits for NumberSet;
    using GroupSets for Column;
    using Rows for mapping(uint256 => uint256);

    /// @dev Adds an action to an existing group. Returns its index.
    function _addAction(uint256 id, uint256 actor, uint256 groupId, uint256 action) internal returns (uint256 index) {
        Column storage column = _accounts[id].actions[action];
        (index, ) = _know(id, action);
        if (!column.add(groupId)) return index;
        Group storage group = _accounts[id].groups[groupId];
        group.actionPages = group.actionRow.add(group.actionPages, index);
        emit ActionAddedToGroup(id, groupId, action, actor);
    }

    function _removeAction(
        uint256 id,
        uint256 actor,
        uint256 groupId,
        uint256 action
    ) internal returns (uint256 index) {
        Column storage column = _accounts[id].actions[action];
        if (!column.remove(groupId)) revert NotInGroup(groupId, action);
        index = column.index;
        _accounts[id].groups[groupId].actionRow.remove(index);
        emit ActionRemovedFromGroup(id, groupId, action, actor);
    }

    function _addPkp(uint256 id, uint256 actor, uint256 groupId, address pkpId) internal returns (uint256 number) {
        Column storage column = _accounts[id].wallets[pkpId].column;
        number = column.index;
        if (number == 0 && pkpId != address(0)) revert UnknownPkp(pkpId);
        if (!column.add(groupId)) return number;
        Group storage group = _accounts[id].groups[groupId];
        group.pkpPages = group.pkpRow.add(group.pkpPages, number);
        emit PkpAddedToGroup(id, groupId, pkpId, actor);
    }

    function _removePkp(uint256 id, uint256 actor, uint256 groupId, address pkpId) internal returns (uint256 number) {
        Column storage column = _accounts[id].wallets[pkpId].column;
        if (!column.remove(groupId)) revert NotInGroup(groupId, uint160(pkpId));
        number = column.index;
        _accounts[id].groups[groupId].pkpRow.remove(number);
        emit PkpRemovedFromGroup(id, groupId, pkpId, actor);
    }

    /// @dev Adds actions to an existing group. Returns their indexes.
    function _addActions(
        uint256 id,
        uint256 actor,
        uint256 groupId,
        uint256[] calldata actions
    ) internal returns (NumberSet memory set) {
        set = Bits.empty(INDEXES_PER_WORD, _accounts[id].lastAction + actions.length);
        for (uint256 i = 0; i < actions.length; i++) set.put(_addAction(id, actor, groupId, actions[i]));
    }

    function _addPkps(
        uint256 id,
        uint256 actor,
        uint256 groupId,
        address[] calldata pkps
    ) internal returns (NumberSet memory set) {
        set = Bits.empty(INDEXES_PER_WORD, _accounts[id].lastPkp);
        for (uint256 i = 0; i < pkps.length; i++) set.put(_addPkp(id, actor, groupId, pkps[i]));
    }

    /// @dev Adds some actions and removes others. Reverts if an action is in both lists.
    function _changeActions(
        uint256 id,
        uint256 actor,
        uint256 groupId,
        uint256[] calldata add,
        uint256[] calldata remove
    ) internal {
        NumberSet memory added = _addActions(id, actor, groupId, add);
        for (uint256 i = 0; i < remove.length; i++) {
            if (added.has(_removeAction(id, actor, groupId, remove[i]))) revert MemberInBothLists(remove[i]);
        }
    }

    function _changePkps(
        uint256 id,
        uint256 actor,
        uint256 groupId,
        address[] calldata add,
        address[] calldata remove
    ) internal {
        NumberSet memory added = _addPkps(id, actor, groupId, add);
        for (uint256 i = 0; i < remove.length; i++) {
            if (added.has(_removePkp(id, actor, groupId, remove[i]))) revert MemberInBothLists(uint160(remove[i]));
        }
    }

    /// @dev For the owner: removes every action that is not in `wanted`, which covers every index of the account.
    function _dropActionsBut(uint256 id, uint256 groupId, NumberSet memory wanted) internal {
        Account storage account = _accounts[id];
        Group storage group = account.groups[groupId];
        for (uint256 page = 0; page < wanted.words.length; page++) {
            if (!Rows.mayFill(group.actionPages, page)) continue;
            uint256 gone = group.actionRow[page] & _liveWord(account, page) & ~wanted.words[page];
            for (; gone != 0; gone &= gone - 1) {
                _removeAction(id, id, groupId, account.actionAt[page * INDEXES_PER_WORD + Bits.lowest(gone)].hash);
            }
        }
    }

    function _dropPkpsBut(uint256 id, uint256 groupId, NumberSet memory wanted) internal {
        Account storage account = _accounts[id];
        Group storage group = account.groups[groupId];
        for (uint256 page = 0; page < wanted.words.length; page++) {
            if (!Rows.mayFill(group.pkpPages, page)) continue;
            uint256 gone = group.pkpRow[page] & ~wanted.words[page];
            for (; gone != 0; gone &= gone - 1) {
                _removePkp(id, id, groupId, account.pkpAt[page * INDEXES_PER_WORD + Bits.lowest(gone)].wallet);
            }
        }
    }

    /// @dev Gives an action that is new to the account the next index. "Any action" has index 0.
    function _know(uint256 id, uint256 action) internal returns (uint256 index, bool isNew) {
        Account storage account = _accounts[id];
        index = account.actions[action].index;
        if (index != 0 || action == 0) return (index, false);
        index = ++account.lastAction;
        account.actions[action].index = uint32(index);
        account.actionAt[index].hash = action;
        account.liveActions[index / INDEXES_PER_WORD] |= 1 << (index % INDEXES_PER_WORD);
        return (index, true);
    }

    /// @dev Removes an action from the account. Its memberships end with its index.
    function _forget(uint256 id, uint256 action) internal {
        uint256 index = _actionIndex(id, action);
        _accounts[id].actions[action].retire();
        _accounts[id].liveActions[index / INDEXES_PER_WORD] &= ~(1 << (index % INDEXES_PER_WORD));
    }

    function _actionIndex(uint256 id, uint256 action) internal view returns (uint256 index) {
        index = _accounts[id].actions[action].index;
        if (index == 0) revert UnknownAction(action);
    }
}
