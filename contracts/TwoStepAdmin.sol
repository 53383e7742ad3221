// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ITwoStepAdmin} from "./interfaces/ITwoStepAdmin.sol";
import {Addresses} from "./libraries/Addresses.sol";
import {AdminStorage} from "./types/AdminStorage.sol";

/// @title An admin that can only be replaced by one who accepts
/// @notice Not OpenZeppelin's Ownable2Step: its `transferOwnership` and `OwnershipTransferred` would read like an
///   account's, and it can be renounced.
abstract contract TwoStepAdmin is AdminStorage, ITwoStepAdmin {
    modifier onlyAdmin() {
        _requireAdmin();
        _;
    }

    /// @inheritdoc ITwoStepAdmin
    function proposeAdmin(address newAdmin) external onlyAdmin {
        _requireAddress(newAdmin);
        if (newAdmin == _pendingAdmin) return;
        _pendingAdmin = newAdmin;
        emit AdminProposed(newAdmin);
    }

    /// @inheritdoc ITwoStepAdmin
    function cancelAdminProposal() external onlyAdmin {
        if (_pendingAdmin == address(0)) revert NothingToCancel();
        emit AdminProposalCancelled(_pendingAdmin);
        _pendingAdmin = address(0);
    }

    /// @inheritdoc ITwoStepAdmin
    function acceptAdmin() external {
        if (msg.sender != _pendingAdmin) revert NotPendingAdmin(msg.sender);
        _pendingAdmin = address(0);
        _appoint(msg.sender);
    }

    /// @inheritdoc ITwoStepAdmin
    function admin() external view returns (address) {
        return _admin;
    }

    /// @inheritdoc ITwoStepAdmin
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
        Addresses.requireSet(given);
    }
}
