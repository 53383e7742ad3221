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

    /// @dev Whether this is the delegate or the one behind it, which the delegate deployed as its first contract.
    function _isDelegate(address account) internal view returns (bool) {
        bytes32 behind = keccak256(abi.encodePacked(hex"d694", _delegate, hex"01"));
        return account == _delegate || account == address(uint160(uint256(behind)));
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
