// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @notice What a key may be allowed to do, in the order of the specification's table of scopes (section 2). No key
///   holds `OwnerOnly`: `MissingScope` names it where only the owner may act.
enum Scope {
    Execute, // per group
    CreatePkps, // account-wide
    CreateGroups, // account-wide
    DeleteGroups, // account-wide
    ManageActions, // per group
    AddPkp, // per group
    RemovePkp, // per group
    OwnerOnly
}

/// @notice Why a run is denied; the first rule that fails.
enum DenialReason {
    None, // allowed
    UnknownKey, // neither an account nor a usage key that is set
    KeyExpired, // a usage key at or after its expiration
    AccountChainSecured, // the account key of an account that is no longer managed
    NoExecuteScope, // no existing group in which the key may execute
    ActionNotPermitted, // none of those groups lists the action (or any)
    UnknownPkp, // no PKP of this account
    PkpNotPermitted, // no single one of those groups lists both the action (or any) and the PKP (or any)
    AccountFrozen // the owner froze the account; checked before groups
}

/// @notice An account, as `getAccount` returns it.
struct AccountInfo {
    uint256 id; // account id (`apiKeyHash` on the wire)
    address adminWalletAddress; // the owner
    bool managed; // true: API mode; false: ChainSecured mode
    string name;
    string description;
    uint256 groupCount; // existing groups
    uint256 actionCount; // actions of the account
    uint256 pkpCount; // PKPs; also the number of the last one
    uint256 usageApiKeyCount; // usage keys that are set, expired ones included
    uint256 lastGroupId; // id of the newest group ever added; the next one gets the next number
    bool frozen; // only the owner can act
}

/// @notice A key of any kind and state, as `getKey` returns it.
struct KeyInfo {
    uint256 accountId; // 0 if the key was never known
    bool isAccountKey; // true: an account id; false: a usage key (or nothing)
    bool live; // at this block: set, not expired, and for an account key: the account is managed
    bool managed; // of the account
    address owner; // of the account
    uint256 expiration; // unix seconds, 0 = never
    uint256 balance; // spending cap in US cents, 0 = none
    bool frozen; // the account is frozen: a live usage key cannot act
}

/// @notice A usage key with its scopes. The lists are ascending and without duplicates; 0 stands for every existing
///   group.
struct UsageApiKeyInfo {
    uint256 id; // key id
    uint256 accountId;
    uint256 expiration; // unix seconds, 0 = never
    uint256 balance; // spending cap in US cents over the key's life, 0 = none
    string name;
    string description;
    bool createGroups;
    bool deleteGroups;
    bool createPKPs;
    uint256[] manageIPFSIdsInGroups;
    uint256[] addPkpToGroups;
    uint256[] removePkpFromGroups;
    uint256[] executeInGroups;
}

/// @notice A group. The counts include "any" members.
struct GroupInfo {
    uint256 id;
    string name;
    string description;
    uint256 pkpCount;
    uint256 actionCount;
}

/// @notice An action of an account. `actionHash` 0 in the list of a group is "any action".
struct ActionInfo {
    uint256 actionHash; // keccak256 of the UTF-8 bytes of the CID text
    string name;
    string description;
}

/// @notice A PKP of an account. Number 0 and address zero in the list of a group is "any PKP of this account".
struct PkpInfo {
    uint256 number; // in its account, from 1
    address pkpId;
    uint256 derivationPath;
    string name;
    string description;
    uint256 deniedOps; // bits, see `setPkpOps`; 0 = none
}

/// @notice A payer that was added and is not active yet.
struct ScheduledPayer {
    address payer;
    uint256 activeFrom; // unix seconds
}
