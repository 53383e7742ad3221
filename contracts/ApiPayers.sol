// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {EnumerableSet} from "@openzeppelin/contracts/utils/structs/EnumerableSet.sol";
import {TwoStepAdmin} from "./TwoStepAdmin.sol";
import {IAccountManager} from "./interfaces/IAccountManager.sol";

/// @title The API payers and who appoints them
abstract contract ApiPayers is TwoStepAdmin, IAccountManager {
    using EnumerableSet for EnumerableSet.AddressSet;

    address public adminApiPayer;
    EnumerableSet.AddressSet private _payers;

    constructor(address firstAdmin) TwoStepAdmin(firstAdmin) {}

    function addApiPayer(address payer) external onlyAdmin {
        _requireAddress(payer);
        if (_payers.add(payer)) emit ApiPayerAdded(payer);
    }

    function removeApiPayer(address payer) external onlyAdmin {
        if (!_payers.remove(payer)) revert UnknownApiPayer(payer);
        emit ApiPayerRemoved(payer);
    }

    function setAdminApiPayer(address payer) external onlyAdmin {
        _requireAddress(payer);
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
