// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccountErrors} from "../interfaces/IAccountErrors.sol";

/// @dev Every set of groups is stored in words of 224 bits: group g is bit g % 224 of word g / 224. Decisions AND the
///   words of different sets. The remaining 32 bits of a slot hold data read or written together with the word.
uint256 constant GROUPS_PER_WORD = 224;

/// @dev The groups that exist in an account. Bit 0 is never set: there is no group 0.
struct GroupRegister {
    uint32 lastId; // of the newest group ever
    uint224 first; // groups 1 … 223
    mapping(uint256 word => uint256) more;
}

/// @dev The groups that list one item (an action or a PKP).
struct Column {
    uint32 index; // of the item in its account, from 1; 0: unknown item, or "any"
    uint224 first; // groups 1 … 223
    mapping(uint256 indexAndWord => uint256) more; // keyed by the index too: retiring it drops these memberships
}

/// @dev One list of a usage key. A word counts only if it carries the key's current generation: a new generation
///   empties the lists with one write, and overwriting old words is cheap. Bit 0 of word 0 is the wildcard "every
///   group".
struct GroupList {
    mapping(uint256 word => uint256) stamped; // generation (32 bits) ‖ groups (224 bits)
}

/// @title Sets of groups
library GroupSets {
    // ----------------------------------------------------------------------------------------------- groups that exist

    function at(GroupRegister storage register, uint256 word) internal view returns (uint256) {
        return word == 0 ? register.first : register.more[word];
    }

    function has(GroupRegister storage register, uint256 groupId) internal view returns (bool) {
        return _bit(at(register, groupId / GROUPS_PER_WORD), groupId);
    }

    /// @dev How many words the ids of an account fill.
    function wordCount(GroupRegister storage register) internal view returns (uint256) {
        return register.lastId / GROUPS_PER_WORD + 1;
    }

    function add(GroupRegister storage register) internal returns (uint256 groupId) {
        groupId = ++register.lastId;
        uint256 word = groupId / GROUPS_PER_WORD;
        if (word == 0) register.first |= uint224(_mask(groupId));
        else register.more[word] |= _mask(groupId);
    }

    function remove(GroupRegister storage register, uint256 groupId) internal {
        uint256 word = groupId / GROUPS_PER_WORD;
        if (word == 0) register.first &= ~uint224(_mask(groupId));
        else register.more[word] &= ~_mask(groupId);
    }

    // ---------------------------------------------------------------------------------------- groups that list an item

    /// @dev `index` is the column's own; a caller that reads many words loads it once.
    function at(Column storage column, uint256 index, uint256 word) internal view returns (uint256) {
        return word == 0 ? column.first : column.more[_key(index, word)];
    }

    /// @dev Adds a group. Returns whether it was missing.
    function add(Column storage column, uint256 groupId) internal returns (bool added) {
        uint256 word = groupId / GROUPS_PER_WORD;
        uint256 index = column.index;
        uint256 groups = at(column, index, word);
        added = !_bit(groups, groupId);
        if (added) _put(column, index, word, groups | _mask(groupId));
    }

    /// @dev Removes a group. Returns whether it was there.
    function remove(Column storage column, uint256 groupId) internal returns (bool removed) {
        uint256 word = groupId / GROUPS_PER_WORD;
        uint256 index = column.index;
        uint256 groups = at(column, index, word);
        removed = _bit(groups, groupId);
        if (removed) _put(column, index, word, groups & ~_mask(groupId));
    }

    function _put(Column storage column, uint256 index, uint256 word, uint256 groups) private {
        if (word == 0) column.first = uint224(groups);
        else column.more[_key(index, word)] = groups;
    }

    /// @dev Removes the item and all its memberships at once.
    function retire(Column storage column) internal {
        column.index = 0;
        column.first = 0;
    }

    function _key(uint256 index, uint256 word) private pure returns (uint256) {
        return (index << GROUPS_PER_WORD) | word;
    }

    // -------------------------------------------------------------------------------------------------- lists of a key

    function at(GroupList storage list, uint32 generation, uint256 word) internal view returns (uint256) {
        uint256 stamped = list.stamped[word];
        return stamped >> GROUPS_PER_WORD == generation ? uint224(stamped) : 0;
    }

    function has(GroupList storage list, uint32 generation, uint256 groupId) internal view returns (bool) {
        return _bit(at(list, generation, groupId / GROUPS_PER_WORD), groupId);
    }

    function put(GroupList storage list, uint32 generation, uint256 word, uint256 groups) internal {
        list.stamped[word] = (uint256(generation) << GROUPS_PER_WORD) | groups;
    }

    /// @dev Converts a caller's list to words. Order and duplicates do not matter. Reverts on an id above the account's
    ///   last one.
    function fromList(uint256[] calldata list, uint256 lastId) internal pure returns (uint256[] memory words) {
        if (list.length == 0) return words;
        uint256 highest = 0;
        for (uint256 i = 0; i < list.length; i++) {
            if (list[i] > lastId) revert IAccountErrors.UnknownGroup(list[i]);
            if (list[i] > highest) highest = list[i];
        }
        words = new uint256[](highest / GROUPS_PER_WORD + 1);
        for (uint256 i = 0; i < list.length; i++) words[list[i] / GROUPS_PER_WORD] |= _mask(list[i]);
    }

    // ------------------------------------------------------------------------------------------------------------ bits

    function _mask(uint256 groupId) private pure returns (uint256) {
        return 1 << (groupId % GROUPS_PER_WORD);
    }

    function _bit(uint256 word, uint256 groupId) private pure returns (bool) {
        return word & _mask(groupId) != 0;
    }
}
