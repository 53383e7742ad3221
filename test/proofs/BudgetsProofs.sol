// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Budgets} from "../../contracts/Budgets.sol";

/// @dev Statements for the compiler's model checker (scripts/proofs.ts), for all arguments and any state. Never
/// deployed.
contract BudgetsProofs is Budgets {
    constructor(address accountManager_) Budgets(accountManager_) {}

    function usedIsAtMostTheLimit(bytes32 counter, uint128 amount, uint128 limit) external {
        _add(counter, amount, limit);
        assert(_used[counter] <= limit);
    }

    function otherCountersStay(bytes32 counter, bytes32 other, uint128 amount, uint128 limit) external {
        uint256 before = _used[other];
        _add(counter, amount, limit);
        assert(other == counter || _used[other] == before);
    }
}
