// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Column, GroupList, GroupRegister} from "../libraries/GroupSets.sol";
import {Text, TextLengths} from "../libraries/Texts.sol";
import {Scope} from "./AccountTypes.sol";

// How the contract remembers. Membership is kept both ways: item → groups (`Column`) for decisions, group → items (rows) for lists.

struct Account {
    address owner; // zero: there is no such account
    bool managed;
    TextLengths lengths;
    uint32 lastAction; // index of the newest action
    uint32 lastPkp; // number of the newest PKP
    Text text;
    GroupRegister groupsThatExist;
    mapping(uint256 groupId => Group) groups;
    mapping(uint256 action => Column) actions; // 0: any action
    mapping(uint256 index => Action) actionAt;
    mapping(uint256 page => uint256) liveActions; // indexes that are not retired, 256 a word
    Column anyPkp;
    mapping(uint256 number => Pkp) pkpAt;
    uint256[] usageKeys;
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
    uint256 accountId; // for ever
    uint256 derivationPath;
    Column column;
}

struct UsageKey {
    uint256 accountId; // for ever
    KeyHead head;
    Text text;
    mapping(Scope perGroup => GroupList) lists;
}

/// @dev One slot.
struct KeyHead {
    uint32 position; // in the account's list, from 1; 0: removed
    uint32 generation; // of the lists; never goes back
    uint32 wordCount; // words that the longest list fills
    uint40 expiration;
    uint64 balance;
    uint8 flags; // bit 0 createGroups, bit 1 deleteGroups, bit 2 createPKPs
    TextLengths lengths;
}
