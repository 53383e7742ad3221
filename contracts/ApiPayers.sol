// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {EnumerableSet} from "@openzeppelin/contracts/utils/structs/EnumerableSet.sol";
import {IAccountManager} from "./interfaces/IAccountManager.sol";

/// @title The contract admin and the API payers
/// @notice Not OpenZeppelin's Ownable: its `transferOwnership` and `OwnershipTransferred` would read like an account's.
abstract contract ApiPayers is IAccountManager {
    using EnumerableSet for EnumerableSet.AddressSet;

    address public admin;
    address public pendingAdmin;
    address public adminApiPayer;
    EnumerableSet.AddressSet private _payers;

    constructor(address firstAdmin) {
        if (firstAdmin == address(0)) revert ZeroAddress();
        admin = firstAdmin;
        emit AdminChanged(address(0), firstAdmin);
    }

    modifier onlyAdmin() {
        if (msg.sender != admin) revert NotAdmin(msg.sender);
        _;
    }

    function proposeAdmin(address newAdmin) external onlyAdmin {
        if (newAdmin == address(0)) revert ZeroAddress();
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

    function addApiPayer(address payer) external onlyAdmin {
        if (payer == address(0)) revert ZeroAddress();
        if (_payers.add(payer)) emit ApiPayerAdded(payer);
    }

    function removeApiPayer(address payer) external onlyAdmin {
        if (!_payers.remove(payer)) revert UnknownApiPayer(payer);
        emit ApiPayerRemoved(payer);
    }

    function setAdminApiPayer(address payer) external onlyAdmin {
        if (payer == address(0)) revert ZeroAddress();
        if (payer == adminApiPayer) return;
        adminApiPayer = payer;
        emit AdminApiPayerSet(payer);
    }

    function apiPayers() external view returns (address[] memory) {
        return _payers.values();
    }

    function _isApiPayer(address caller) internal view returns (bool) {
        return _payers.contains(caller);
    }
}
