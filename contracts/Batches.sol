// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC2771Context} from "@openzeppelin/contracts/metatx/ERC2771Context.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {IAccountCore} from "./interfaces/IAccountCore.sol";

/// @title Several calls in one transaction
/// @dev Both functions delegatecall this contract, which keeps `msg.sender`, and pass on the ERC-2771 signer if the
///   forwarder is the sender, as OpenZeppelin's Multicall does.
abstract contract Batches is ERC2771Context, IAccountCore {
    uint256 private constant CALL_GAS = 1_000_000;
    /// @dev A call gets at most 63/64 of what is left (EIP-150); the rest pays for the loop and the event.
    uint256 private constant GAS_BEFORE_CALL = (CALL_GAS * 64) / 63 + 10_000;

    /// @inheritdoc IAccountCore
    function multicall(bytes[] calldata data) external returns (bytes[] memory results) {
        results = new bytes[](data.length);
        for (uint256 i = 0; i < data.length; i++)
            results[i] = Address.functionDelegateCall(address(this), _fromSender(data[i]));
    }

    /// @inheritdoc IAccountCore
    function tryMulticall(bytes[] calldata data) external returns (bool[] memory succeeded) {
        succeeded = new bool[](data.length);
        for (uint256 i = 0; i < data.length; i++) {
            bytes4 selector = bytes4(data[i]);
            if (selector == this.multicall.selector || selector == this.tryMulticall.selector) revert NestedBatch();
            bytes memory call = _fromSender(data[i]);
            if (gasleft() < GAS_BEFORE_CALL) revert TooLittleGas(gasleft(), GAS_BEFORE_CALL);
            bytes memory reason;
            (succeeded[i], reason) = address(this).delegatecall{gas: CALL_GAS}(call);
            if (!succeeded[i]) emit CallFailed(i, reason);
        }
    }

    /// @dev Appends this call's ERC-2771 suffix, if it has one.
    function _fromSender(bytes calldata call) private view returns (bytes memory) {
        return
            msg.sender == _msgSender() ? call : bytes.concat(call, msg.data[msg.data.length - _contextSuffixLength():]);
    }
}
