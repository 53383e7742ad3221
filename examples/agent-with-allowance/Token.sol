// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC3009} from "@openzeppelin/contracts/token/ERC20/extensions/draft-ERC3009.sol";

/// @notice A stablecoin for tests, with EIP-3009 like USDC: whoever holds a signed authorization can have it carried
///   out.
contract Token is ERC3009 {
    constructor() ERC20("Test USD", "TUSD") EIP712("Test USD", "1") {
        _mint(msg.sender, 1_000_000e6);
    }

    function decimals() public pure override returns (uint8) {
        return 6;
    }
}
