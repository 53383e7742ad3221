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
        _requireAdmin();
        _;
    }

    function proposeAdmin(address newAdmin) external onlyAdmin {
        _requireAddress(newAdmin);
        if (newAdmin == pendingAdmin) return;
        pendingAdmin = newAdmin;
        emit AdminProposed(newAdmin);
    }

    function cancelAdminProposal() external onlyAdmin {
        if (pendingAdmin == address(0)) revert NothingToCancel();
        emit AdminProposalCancelled(pendingAdmin);
        pendingAdmin = address(0);
    }

    function acceptAdmin() external {
        if (msg.sender != pendingAdmin) revert NotPendingAdmin(msg.sender);
        emit AdminChanged(admin, msg.sender);
        admin = msg.sender;
        pendingAdmin = address(0);
    }

    function _requireAdmin() private view {
        if (msg.sender != admin) revert NotAdmin(msg.sender);
    }

    /// @dev May this address be given a role?
    function _requireAddress(address given) internal view virtual {
        if (given == address(0)) revert ZeroAddress();
    }
}
