// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {EnumerableMap} from "@openzeppelin/contracts/utils/structs/EnumerableMap.sol";
import {AccountRules} from "./AccountRules.sol";
import {TwoStepAdmin} from "./TwoStepAdmin.sol";
import {IAccountCore} from "./interfaces/IAccountCore.sol";

/// @title The API payers and who appoints them
/// @dev A payer acts from a time on, written down when it is added: nothing has to be sent when that time comes.
abstract contract ApiPayers is AccountRules, TwoStepAdmin, IAccountCore {
    using EnumerableMap for EnumerableMap.AddressToUintMap;

    uint256 private constant MAX_DELAY = 365 days;

    uint256 public immutable payerDelaySeconds;

    constructor(address firstAdmin, uint256 delaySeconds) TwoStepAdmin(firstAdmin) {
        if (delaySeconds > MAX_DELAY) revert DelayTooLong(delaySeconds, MAX_DELAY);
        payerDelaySeconds = delaySeconds;
    }

    function addApiPayer(address payer) external onlyAdmin {
        _requireAddress(payer);
        if (_payers.activeFrom.contains(payer)) return;
        uint256 activeFrom = _activeFrom();
        _payers.activeFrom.set(payer, activeFrom);
        if (activeFrom == block.timestamp) emit ApiPayerAdded(payer);
        else emit ApiPayerScheduled(payer, activeFrom);
    }

    function removeApiPayer(address payer) external onlyAdmin {
        if (!_payers.activeFrom.remove(payer)) revert UnknownApiPayer(payer);
        emit ApiPayerRemoved(payer);
    }

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

    function cancelAdminApiPayer() external onlyAdmin {
        _settleAdminPayer();
        address scheduled = _payers.nextAdminPayer;
        if (scheduled == address(0)) revert NothingToCancel();
        _payers.nextAdminPayer = address(0);
        emit AdminApiPayerCancelled(scheduled);
    }

    /// @dev When what is added now takes effect.
    function _activeFrom() private view returns (uint256) {
        return _payers.managedAccountExists ? block.timestamp + payerDelaySeconds : block.timestamp;
    }

    /// @dev Writes down what has taken effect.
    function _settleAdminPayer() private {
        if (_payers.nextAdminPayer == address(0) || block.timestamp < _payers.nextActiveFrom) return;
        _payers.adminPayer = _payers.nextAdminPayer;
        _payers.nextAdminPayer = address(0);
    }
}
