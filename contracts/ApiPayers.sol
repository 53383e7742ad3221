// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {EnumerableMap} from "@openzeppelin/contracts/utils/structs/EnumerableMap.sol";
import {AccountLists} from "./AccountLists.sol";
import {Delegating} from "./Delegating.sol";
import {TwoStepAdmin} from "./TwoStepAdmin.sol";
import {IApiPayers} from "./interfaces/IApiPayers.sol";
import {Addresses} from "./libraries/Addresses.sol";
import {AccountStorage} from "./types/AccountStorage.sol";
import {ScheduledPayer} from "./types/AccountTypes.sol";

/// @title The API payers and who appoints them
/// @notice Runs by delegatecall on `AccountManager`'s storage, which delegates unknown calls here; calls unknown here
///   go on to `AccountLists`. Its own storage is empty: called directly it has no admin, and refuses every write.
/// @dev A payer is active from a time stored when it is added: no transaction is needed when that time comes.
contract ApiPayers is AccountStorage, TwoStepAdmin, Delegating, IApiPayers {
    using EnumerableMap for EnumerableMap.AddressToUintMap;

    uint256 private constant MAX_DELAY = 365 days;

    /// @inheritdoc IApiPayers
    uint256 public immutable payerDelaySeconds;
    address private immutable _forwarder;

    constructor(uint256 delaySeconds, address forwarder) Delegating(address(new AccountLists())) {
        if (delaySeconds > MAX_DELAY) revert DelayTooLong(delaySeconds, MAX_DELAY);
        payerDelaySeconds = delaySeconds;
        _forwarder = forwarder;
    }

    // -------------------------------------------------------------------------------------------------------- writes

    /// @inheritdoc IApiPayers
    function addApiPayer(address payer) external onlyAdmin {
        _requireAddress(payer);
        if (_payers.activeFrom.contains(payer)) return;
        uint256 activeFrom = _activeFrom();
        _payers.activeFrom.set(payer, activeFrom);
        if (activeFrom == block.timestamp) emit ApiPayerAdded(payer);
        else emit ApiPayerScheduled(payer, activeFrom);
    }

    /// @inheritdoc IApiPayers
    function removeApiPayer(address payer) external onlyAdmin {
        if (!_payers.activeFrom.remove(payer)) revert UnknownApiPayer(payer);
        emit ApiPayerRemoved(payer);
    }

    /// @inheritdoc IApiPayers
    function setAdminApiPayer(address payer) external onlyAdmin {
        _requireAddress(payer);
        _settleAdminPayer();
        if (payer == _payers.adminPayer || payer == _payers.nextAdminPayer) return;
        uint256 activeFrom = _activeFrom();
        if (activeFrom == block.timestamp) {
            _payers.adminPayer = payer;
            emit AdminApiPayerSet(payer);
        } else {
            _payers.nextAdminPayer = payer;
            _payers.nextActiveFrom = uint48(activeFrom);
            emit AdminApiPayerScheduled(payer, activeFrom);
        }
    }

    /// @inheritdoc IApiPayers
    function cancelAdminApiPayer() external onlyAdmin {
        _settleAdminPayer();
        address scheduled = _payers.nextAdminPayer;
        if (scheduled == address(0)) revert NothingToCancel();
        _payers.nextAdminPayer = address(0);
        emit AdminApiPayerCancelled(scheduled);
    }

    function _requireAddress(address given) internal view override {
        Addresses.requireRole(given, _forwarder);
    }

    /// @dev When an addition made now takes effect.
    function _activeFrom() private view returns (uint256) {
        return _payers.managedAccountExists ? block.timestamp + payerDelaySeconds : block.timestamp;
    }

    /// @dev Stores a scheduled admin payer that has taken effect.
    function _settleAdminPayer() private {
        if (!_nextAdminPayerActs()) return;
        _payers.adminPayer = _payers.nextAdminPayer;
        _payers.nextAdminPayer = address(0);
    }

    // --------------------------------------------------------------------------------------------------------- views

    /// @inheritdoc IApiPayers
    function isApiPayer(address payer) external view returns (bool) {
        (bool added, uint256 activeFrom) = _payers.activeFrom.tryGet(payer);
        return added && block.timestamp >= activeFrom;
    }

    /// @inheritdoc IApiPayers
    function apiPayers() external view returns (address[] memory payers) {
        ScheduledPayer[] memory found = _payersThat(true);
        payers = new address[](found.length);
        for (uint256 i = 0; i < payers.length; i++) payers[i] = found[i].payer;
    }

    /// @inheritdoc IApiPayers
    function scheduledApiPayers() external view returns (ScheduledPayer[] memory) {
        return _payersThat(false);
    }

    /// @inheritdoc IApiPayers
    function adminApiPayer() external view returns (address) {
        return _nextAdminPayerActs() ? _payers.nextAdminPayer : _payers.adminPayer;
    }

    /// @inheritdoc IApiPayers
    function scheduledAdminApiPayer() external view returns (ScheduledPayer memory scheduled) {
        if (!_nextAdminPayerActs() && _payers.nextAdminPayer != address(0)) {
            scheduled = ScheduledPayer(_payers.nextAdminPayer, _payers.nextActiveFrom);
        }
    }

    function _nextAdminPayerActs() private view returns (bool) {
        return _payers.nextAdminPayer != address(0) && block.timestamp >= _payers.nextActiveFrom;
    }

    /// @dev The payers active at this block, or the scheduled ones.
    function _payersThat(bool act) private view returns (ScheduledPayer[] memory found) {
        found = new ScheduledPayer[](_payers.activeFrom.length());
        uint256 count = 0;
        for (uint256 i = 0; i < found.length; i++) {
            (address payer, uint256 activeFrom) = _payers.activeFrom.at(i);
            if ((block.timestamp >= activeFrom) == act) found[count++] = ScheduledPayer(payer, activeFrom);
        }
        assembly ("memory-safe") {
            mstore(found, count) // shrink to the entries found
        }
    }
}
