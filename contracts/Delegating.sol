// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Delegates unknown calls to another contract's code
/// @notice Unknown functions run by delegatecall in a contract that the constructor deployed, with the same caller and
///   storage. The delegate is immutable: no call and no role can change it.
abstract contract Delegating {
    address private immutable _delegate;

    constructor(address delegate) {
        _delegate = delegate;
    }

    fallback() external {
        address delegate = _delegate;
        assembly ("memory-safe") {
            let data := mload(0x40)
            calldatacopy(data, 0, calldatasize())
            let answered := delegatecall(gas(), delegate, data, calldatasize(), 0, 0)
            returndatacopy(data, 0, returndatasize())
            if iszero(answered) {
                revert(data, returndatasize())
            }
            return(data, returndatasize())
        }
    }
}
