// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {AccountInfo, ActionInfo, GroupInfo, KeyInfo, PkpInfo, UsageApiKeyInfo} from "../types/AccountTypes.sol";
import {IAccountErrors} from "./IAccountErrors.sol";

/// @title Views of keys, records and lists
interface IAccountLists is IAccountErrors {
    /// @notice Does a live key of an account that is not frozen hold a scope?
    /// @dev The account key of a managed account holds every scope on every existing group. A usage key of an unmanaged
    ///   account still holds its scopes; but only Execute can be used there.
    /// @param key A key id or the id of a managed account.
    /// @param scope The scope, a number of `Scope`; false for any other number.
    /// @param groupId An existing group (false if it is none), or 0: does the key hold the scope on every group?
    ///   Ignored where the scope is account-wide.
    /// @return Whether it does.
    function hasScope(uint256 key, uint8 scope, uint256 groupId) external view returns (bool);

    /// @notice Which account a key belongs to, in any state: an account id answers itself (managed or not), a usage key
    ///   its account (also expired or removed: key ids are never given to another account).
    /// @param key An account id or key id.
    /// @return The account id, or 0 if the key was never known. Says nothing about what the key may do: see `getKey`.
    function accountOf(uint256 key) external view returns (uint256);

    /// @notice What a key is and whether it acts at this block.
    /// @param key An account id or key id, known or not.
    /// @return The answer; all zero for a key that was never known. `expiration` and `balance` are 0 for a revoked key.
    function getKey(uint256 key) external view returns (KeyInfo memory);

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
    /// @dev All lists: `UnknownAccount` for an unknown account, then `UnknownGroup` or `GroupZero`; at most 1,000 items
    ///   a page (200 usage keys), else `PageTooLarge`; a page past the end is empty. Ask for smaller pages where
    ///   descriptions are long: a node limits the gas of a call.
    /// @param id The account id.
    /// @param offset How many items to skip.
    /// @param limit How many items to show at most.
    /// @return items The page.
    /// @return total How many there are in all.
    function listGroups(
        uint256 id,
        uint256 offset,
        uint256 limit
    ) external view returns (GroupInfo[] memory items, uint256 total);

    /// @notice The actions of an account, in the order in which the account first had them.
    /// @param id The account id.
    /// @param offset How many items to skip.
    /// @param limit At most 1,000.
    /// @return items The page.
    /// @return total How many there are in all.
    function listActions(
        uint256 id,
        uint256 offset,
        uint256 limit
    ) external view returns (ActionInfo[] memory items, uint256 total);

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
    function listPkps(
        uint256 id,
        uint256 offset,
        uint256 limit
    ) external view returns (PkpInfo[] memory items, uint256 total);

    /// @notice The PKPs a group lists: first "any PKP" (number 0, address zero) if it is listed, then by ascending
    ///   number.
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

    /// @notice The usage keys that are set on an account, in the order in which they were set; when one is removed, the
    ///   last takes its place.
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
}
