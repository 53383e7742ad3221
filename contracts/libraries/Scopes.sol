// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Scope} from "../types/AccountTypes.sol";

/// @title The scope that a change of members needs
/// @notice Member 0 means "any action" or "any PKP" and is the owner's alone, whatever a key may do in the group.
library Scopes {
    function unlessAny(Scope scope, uint256 action) internal pure returns (Scope) {
        return action == 0 ? Scope.OwnerOnly : scope;
    }

    function unlessAny(Scope scope, uint256[] calldata actions) internal pure returns (Scope) {
        for (uint256 i = 0; i < actions.length; i++) scope = unlessAny(scope, actions[i]);
        return scope;
    }

    function unlessAny(Scope scope, address pkp) internal pure returns (Scope) {
        return pkp == address(0) ? Scope.OwnerOnly : scope;
    }

    function unlessAny(Scope scope, address[] calldata pkps) internal pure returns (Scope) {
        for (uint256 i = 0; i < pkps.length; i++) scope = unlessAny(scope, pkps[i]);
        return scope;
    }
}
