// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Scopes} from "../../contracts/libraries/Scopes.sol";
import {Scope} from "../../contracts/types/AccountTypes.sol";

/// @dev Statements for the compiler's model checker (scripts/proofs.ts), for all arguments. Never deployed.
contract ScopesProofs {
    function anyAction(Scope scope, uint256 action) external pure {
        Scope needed = Scopes.unlessAny(scope, action);
        assert(action == 0 ? needed == Scope.OwnerOnly : needed == scope);
    }

    function anyPkp(Scope scope, address pkp) external pure {
        Scope needed = Scopes.unlessAny(scope, pkp);
        assert(pkp == address(0) ? needed == Scope.OwnerOnly : needed == scope);
    }

    function aList(Scope scope, uint256[] calldata actions, uint256 i) external pure {
        require(i < actions.length);
        Scope needed = Scopes.unlessAny(scope, actions);
        assert(needed == scope || needed == Scope.OwnerOnly);
        if (actions[i] == 0) assert(needed == Scope.OwnerOnly);
    }
}
