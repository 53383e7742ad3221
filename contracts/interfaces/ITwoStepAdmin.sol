// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title An admin that can only be replaced by one who accepts
interface ITwoStepAdmin {
    /// @notice The contract admin named a successor, who has to accept.
    event AdminProposed(address indexed newAdmin);
    /// @notice The proposal of an admin was cancelled.
    event AdminProposalCancelled(address indexed newAdmin);
    /// @notice The contract has another admin (the first one comes from address zero).
    event AdminChanged(address indexed oldAdmin, address indexed newAdmin);

    /// @notice The caller is not the contract admin.
    error NotAdmin(address caller);
    /// @notice The caller is not the proposed admin.
    error NotPendingAdmin(address caller);
    /// @notice An address must not be zero.
    error ZeroAddress();

    /// @notice There is nothing that could be cancelled.
    error NothingToCancel();

    /// @notice Names a successor of the contract admin, who has to accept. A later proposal replaces an earlier one.
    /// @dev Emits {AdminProposed}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the address is not zero (`ZeroAddress`).
    /// @param newAdmin The successor.
    function proposeAdmin(address newAdmin) external;

    /// @notice Takes back the proposal of an admin.
    /// @dev Emits {AdminProposalCancelled}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); an admin is proposed (`NothingToCancel`).
    function cancelAdminProposal() external;

    /// @notice Makes the caller, who was proposed, the contract admin.
    /// @dev Emits {AdminChanged}.
    ///
    /// Requirements: the caller is the proposed admin (`NotPendingAdmin`).
    function acceptAdmin() external;

    /// @notice The contract admin.
    function admin() external view returns (address);

    /// @notice The proposed admin, zero if there is none.
    function pendingAdmin() external view returns (address);
}
