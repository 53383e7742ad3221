// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {IAccountErrors} from "../interfaces/IAccountErrors.sol";
import {Account, KeyHead, UsageKey} from "../types/AccountStorage.sol";
import {Scope} from "../types/AccountTypes.sol";
import {GroupList, GroupSets} from "./GroupSets.sol";
import {Text, Texts} from "./Texts.sol";

/// @title The usage keys of an account, and the values and scope lists of one key
/// @dev Storage only: the caller authorizes before and emits the event after.
library UsageKeys {
    using GroupSets for GroupList;
    using Texts for Text;

    /// @dev Whether a key is set: neither removed nor revoked with all others.
    function isSet(KeyHead storage head, Account storage account) internal view returns (bool) {
        return head.position != 0 && head.epoch == account.epoch;
    }

    /// @dev Whether a key id is nobody's yet. It belongs to one account for ever, and a revoked one is never set again:
    ///   reverts if this account cannot set it.
    function isFree(
        UsageKey storage key,
        Account storage account,
        uint256 id,
        uint256 keyId
    ) internal view returns (bool) {
        if (key.accountId == 0) return true;
        if (key.accountId != id) revert IAccountErrors.KeyIdTaken(keyId);
        if (!isSet(key.head, account)) revert IAccountErrors.KeyRevoked(keyId);
        return false;
    }

    /// @dev Lists a free key id in its account.
    function claim(UsageKey storage key, Account storage account, uint256 id, uint256 keyId) internal {
        key.accountId = id;
        uint256[] storage keys = account.usageKeys[account.epoch];
        keys.push(keyId);
        (key.head.position, key.head.epoch) = (uint32(keys.length), account.epoch);
    }

    /// @dev Removes a set key. The last key of the list takes its place.
    function remove(mapping(uint256 keyId => UsageKey) storage all, Account storage account, uint256 keyId) internal {
        UsageKey storage key = all[keyId];
        uint32 position = key.head.position;
        uint256[] storage keys = account.usageKeys[key.head.epoch];
        uint256 last = keys[keys.length - 1];
        keys[position - 1] = last;
        all[last].head.position = position;
        keys.pop();
        delete key.head;
    }

    /// @dev Sets expiration, balance, flags and texts; the rest of `wanted` is filled in here.
    function setValues(
        UsageKey storage key,
        KeyHead memory wanted,
        string calldata name,
        string calldata description
    ) internal returns (bool changed) {
        KeyHead memory head = key.head;
        (wanted.lengths, changed) = key.text.set(head.lengths, name, description);
        changed =
            changed ||
            head.expiration != wanted.expiration ||
            head.balance != wanted.balance ||
            head.flags != wanted.flags;
        if (!changed) return false;
        (wanted.position, wanted.epoch, wanted.generation, wanted.wordCount) = (
            head.position,
            head.epoch,
            head.generation,
            head.wordCount
        );
        key.head = wanted;
    }

    /// @dev Replaces the four lists under a new generation, unless nothing differs.
    function setLists(UsageKey storage key, uint256[][4] memory lists) internal returns (bool changed) {
        KeyHead memory head = key.head;
        uint256 longest = 0;
        for (uint256 i = 0; i < lists.length; i++) {
            longest = Math.max(longest, lists[i].length);
            for (uint256 word = 0; word < Math.max(head.wordCount, lists[i].length) && !changed; word++) {
                uint256 groups = word < lists[i].length ? lists[i][word] : 0;
                changed = groups != key.lists[_scopeOfList(i)].at(head.generation, word);
            }
        }
        if (!changed) return false;
        head.generation++;
        head.wordCount = uint32(longest);
        key.head = head;
        for (uint256 i = 0; i < lists.length; i++) {
            for (uint256 word = 0; word < lists[i].length; word++) {
                if (lists[i][word] != 0) key.lists[_scopeOfList(i)].put(head.generation, word, lists[i][word]);
            }
        }
    }

    /// @dev The order of the lists in `setUsageApiKey`.
    function _scopeOfList(uint256 i) private pure returns (Scope) {
        if (i == 0) return Scope.ManageActions;
        if (i == 1) return Scope.AddPkp;
        if (i == 2) return Scope.RemovePkp;
        return Scope.Execute;
    }
}
