// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ITwoStepAdmin} from "./interfaces/ITwoStepAdmin.sol";
import {AdminStorage} from "./types/AdminStorage.sol";

/// @title An admin that can only be replaced by one who accepts
/// @notice Not OpenZeppelin's Ownable2Step: its `transferOwnership` and `OwnershipTransferred` would read like an
///   account's, and it can be renounced.
abstract contract TwoStepAdmin is AdminStorage, ITwoStepAdmin {
    modifier onlyAdmin() {
        _requireAdmin();
        _;
    }

    function proposeAdmin(address newAdmin) external onlyAdmin {
        _requireAddress(newAdmin);
        if (newAdmin == _pendingAdmin) return;
        _pendingAdmin = newAdmin;
        emit AdminProposed(newAdmin);
    }

    function cancelAdminProposal() external onlyAdmin {
        if (_pendingAdmin == address(0)) revert NothingToCancel();
        emit AdminProposalCancelled(_pendingAdmin);
        _pendingAdmin = address(0);
    }

    function acceptAdmin() external {
        if (msg.sender != _pendingAdmin) revert NotPendingAdmin(msg.sender);
        _pendingAdmin = address(0);
        _appoint(msg.sender);
    }

    function admin() external view returns (address) {
        return _admin;
    }

    function pendingAdmin() external view returns (address) {
        return _pendingAdmin;
    }

    function _appoint(address newAdmin) internal {
        emit AdminChanged(_admin, newAdmin);
        _admin = newAdmin;
    }

    function _requireAdmin() private view {
        if (msg.sender != _admin) revert NotAdmin(msg.sender);
    }

    /// @dev Reverts if this address may not be given a role.
    function _requireAddress(address given) internal view virtual {
        if (given == address(0)) revert ZeroAddress();
    }
}
