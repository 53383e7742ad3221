// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

// Compiled here, deployed beside `AccountManager`: OpenZeppelin's, unchanged.
import {ERC2771Forwarder} from "@openzeppelin/contracts/metatx/ERC2771Forwarder.sol";
