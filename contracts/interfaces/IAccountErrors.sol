// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Scope} from "../types/AccountTypes.sol";

/// @title Errors: one for each rule that a call can break
interface IAccountErrors {
    /// @notice The caller is neither the owner of the account nor an API payer.
    error NotAuthorized(address caller);
    /// @notice The usage key lacks the scope (on the group, if the scope is per group).
    error MissingScope(Scope scope, uint256 groupId);
    /// @notice The account is ChainSecured: only its owner may write, and its account key does not act.
    error AccountChainSecured(uint256 id);
    /// @notice There is no account (and no usage key) of this id.
    error UnknownAccount(uint256 id);
    /// @notice The account has no usage key of this id set.
    error UnknownUsageKey(uint256 key);
    /// @notice The usage key is at or after its expiration.
    error KeyExpired(uint256 key);
    /// @notice The account has no group of this id (any more).
    error UnknownGroup(uint256 groupId);
    /// @notice The account has no such action.
    error UnknownAction(uint256 action);
    /// @notice The account has no such PKP.
    error UnknownPkp(address pkpId);
    /// @notice The account has no PKP of this number.
    error UnknownPkpNumber(uint256 number);
    /// @notice The group does not list this member (an action id, or a PKP's address as a number).
    error NotInGroup(uint256 groupId, uint256 member);
    /// @notice There is an account of this id.
    error AccountIdTaken(uint256 id);
    /// @notice A ChainSecured account of the caller can only have the id `expected`.
    error ForeignAccountId(uint256 id, uint256 expected);
    /// @notice The id is an account's, or belongs to another account's usage key.
    error KeyIdTaken(uint256 key);
    /// @notice The usage key was revoked: its id can never be set again.
    error KeyRevoked(uint256 key);
    /// @notice The account is frozen: none of its usage keys can act until its owner unfreezes it.
    error AccountFrozen(uint256 id);
    /// @notice The account has registered the wallet already, with another path or other strings.
    error PkpTaken(address pkpId);
    /// @notice The last 16 bytes of the path are not those of the account id.
    error ForeignDerivationPath(uint256 derivationPath, uint256 accountId);
    /// @notice The first byte of the path is neither 1 (PKP) nor 2 (usage key).
    error UnknownPathKind(uint256 kind);
    /// @notice A string is longer than `max` bytes.
    error StringTooLong(uint256 length, uint256 max);
    /// @notice A number is larger than the contract can store.
    error ValueTooLarge(uint256 value, uint256 max);
    /// @notice An account id or key id must not be zero.
    error ZeroId();
    /// @notice A contract without a commitment to a root key would accept any.
    error ZeroRootCommitment();
    /// @notice Group 0 means "every group" in scope lists and is never a group to act on.
    error GroupZero();
    /// @notice Action 0 means "any action" inside groups and is never an action of an account.
    error ActionZero();
    /// @notice The new owner is the present owner.
    error SameOwner(address owner);
    /// @notice Neither this contract nor the code it delegates to can own an account: nobody could ever write to it.
    error OwnerIsThisContract();
    /// @notice One call both adds and removes this member.
    error MemberInBothLists(uint256 member);
    /// @notice A page may hold at most `max` items.
    error PageTooLarge(uint256 limit, uint256 max);
    /// @notice The trusted forwarder can be neither owner, API payer nor admin: anybody could act through it.
    error ForwarderNotAllowed(address forwarder);
    /// @notice The address is no API payer, and none that is scheduled.
    error UnknownApiPayer(address payer);
    /// @notice A call inside `tryMulticall` is itself a batch.
    error NestedBatch();
    /// @notice There is too little gas left for the next call of `tryMulticall` to start.
    error TooLittleGas(uint256 available, uint256 needed);
    /// @notice The delay of additions is longer than `max` seconds: nothing added would ever count.
    error DelayTooLong(uint256 delaySeconds, uint256 max);
}
