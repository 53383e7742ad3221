// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {GROUPS_PER_WORD, GroupRegister, GroupSets} from "../../contracts/libraries/GroupSets.sol";

/// @dev Statements for the compiler's model checker (scripts/proofs.ts), for all arguments. Never deployed.
contract GroupSetsProofs {
    GroupRegister private register;

    function everyGroupHasAWord(uint256 groupId) external view {
        require(groupId <= register.lastId);
        assert(groupId / GROUPS_PER_WORD < GroupSets.wordCount(register));
    }
}
