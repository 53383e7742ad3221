// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ITwoStepAdmin} from "./interfaces/ITwoStepAdmin.sol";

/// @title An admin that can only be replaced by one who accepts
/// @notice Not OpenZeppelin's Ownable2Step: its `transferOwnership` and `OwnershipTransferred` would read like an account's, and it can
/// be renounced.
abstract contract TwoStepAdmin is ITwoStepAdmin {
    address public admin;
    address public pendingAdmin;

    constructor(address firstAdmin) {
        _requireAddress(firstAdmin);
        admin = firstAdmin;
        emit AdminChanged(address(0), firstAdmin);
    }

    modifier onlyAdmin() {
        if (msg.sender != admin) revert NotAdmin(msg.sender);
        _;
    }

    function proposeAdmin(address newAdmin) external onlyAdmin {
        _requireAddress(newAdmin);
        if (newAdmin == pendingAdmin) return;
        pendingAdmin = newAdmin;
        emit AdminProposed(newAdmin);
    }

    function acceptAdmin() external {
        if (msg.sender != pendingAdmin) revert NotPendingAdmin(msg.sender);
        emit AdminChanged(admin, msg.sender);
        admin = msg.sender;
        pendingAdmin = address(0);
    }

    function _requireAddress(address given) internal pure {
        if (given == address(0)) revert ZeroAddress();
    }
}
