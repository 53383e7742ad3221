// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title What dstack's key management asks an application's contract before it hands a booting machine the
///   application's keys
interface IAppAuth {
    /// @notice The measurements of the machine that asks.
    struct AppBootInfo {
        address appId;
        bytes32 composeHash; // SHA-256 of the app_compose string
        address instanceId;
        bytes32 deviceId;
        bytes32 mrAggregated;
        bytes32 mrSystem;
        bytes32 osImageHash;
        string tcbStatus;
        string[] advisoryIds;
    }

    /// @notice May an application with these measurements run?
    /// @return isAllowed The answer.
    /// @return reason Empty if it may, else a sentence.
    function isAppAllowed(AppBootInfo calldata bootInfo) external view returns (bool isAllowed, string memory reason);
}
