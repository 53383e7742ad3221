// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccountErrors} from "../interfaces/IAccountErrors.sol";
import {ITwoStepAdmin} from "../interfaces/ITwoStepAdmin.sol";

/// @title Addresses that can be given something
library Addresses {
    function requireSet(address given) internal pure {
        if (given == address(0)) revert ITwoStepAdmin.ZeroAddress();
    }

    /// @dev Rejects what can be neither owner, payer nor admin: zero, and the forwarder, through which anyone can call.
    function requireRole(address given, address forwarder) internal pure {
        requireSet(given);
        if (given == forwarder) revert IAccountErrors.ForwarderNotAllowed(given);
    }
}
