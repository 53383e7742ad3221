// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Storage of a contract's admin
abstract contract AdminStorage {
    address internal _admin;
    address internal _pendingAdmin; // zero: none is proposed
}
