// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {EnumerableMap} from "@openzeppelin/contracts/utils/structs/EnumerableMap.sol";
import {Column, GroupList, GroupRegister} from "../libraries/GroupSets.sol";
import {Text, TextLengths} from "../libraries/Texts.sol";
import {Scope} from "./AccountTypes.sol";
import {AdminStorage} from "./AdminStorage.sol";

// The contract's storage. Membership is stored both ways: item → groups (`Column`) for decisions, group → items (rows)
// for lists.

struct Account {
    address owner; // zero: there is no such account
    uint8 flags; // bit 0 managed, bit 1 frozen
    uint16 epoch; // usage keys that were set in an earlier one are revoked
    TextLengths lengths;
    uint24 lastAction; // index of the newest action
    uint24 lastPkp; // number of the newest PKP
    Text text;
    GroupRegister groupsThatExist;
    mapping(uint256 groupId => Group) groups;
    mapping(uint256 action => Column) actions; // 0: any action
    mapping(uint256 index => Action) actionAt;
    mapping(uint256 page => uint256) liveActions; // indexes that are not retired, 256 a word
    mapping(address wallet => Wallet) wallets; // zero: any PKP
    mapping(uint256 number => Pkp) pkpAt;
    mapping(uint256 epoch => uint256[]) usageKeys;
}

struct Group {
    TextLengths lengths;
    uint112 actionPages;
    uint112 pkpPages;
    Text text;
    mapping(uint256 page => uint256) actionRow; // may hold retired indexes: read it through `liveActions`
    mapping(uint256 page => uint256) pkpRow;
}

struct Action {
    uint256 hash;
    TextLengths lengths;
    Text text;
}

struct Pkp {
    address wallet;
    TextLengths lengths;
    Text text;
}

/// @dev A registered wallet: a PKP if its column has an index (its number), else the wallet of a usage key.
struct Wallet {
    uint128 pathHead; // the path's kind and random bytes, its tail is the account's; zero: not registered
    uint128 deniedOps;
    Column column;
}

struct UsageKey {
    uint256 accountId; // for ever; zero: never set
    KeyHead head; // empty: removed
    Text text;
    mapping(Scope perGroup => GroupList) lists;
}

/// @dev One slot.
struct KeyHead {
    uint32 position; // in the account's list of the epoch, from 1
    uint16 epoch; // of the account when the key was set
    uint32 generation; // of the lists; never goes back
    uint32 wordCount; // words that the longest list fills
    uint40 expiration;
    uint64 balance;
    uint8 flags; // bit 0 createGroups, bit 1 deleteGroups, bit 2 createPKPs
    TextLengths lengths;
}

/// @dev The API payers and scheduled changes.
struct PayerRegister {
    EnumerableMap.AddressToUintMap activeFrom; // unix seconds
    address adminPayer;
    address nextAdminPayer; // zero: none is scheduled
    uint48 nextActiveFrom;
    bool managedAccountExists; // from then on additions wait
}

/// @title The contract's storage, and nothing else
/// @dev The first base of the contract and of its delegates, so that all share one layout.
abstract contract AccountStorage is AdminStorage {
    mapping(uint256 id => Account) internal _accounts;
    mapping(uint256 key => UsageKey) internal _usageKeys;
    PayerRegister internal _payers;
}

uint8 constant MANAGED = 1; // flags of an account
uint8 constant FROZEN = 2;

uint8 constant CREATE_GROUPS = 1; // flags of a usage key
uint8 constant DELETE_GROUPS = 2;
uint8 constant CREATE_PKPS = 4;
