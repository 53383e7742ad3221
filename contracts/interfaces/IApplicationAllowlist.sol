// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAppAuth} from "./IAppAuth.sol";
import {ITwoStepAdmin} from "./ITwoStepAdmin.sol";

/// @title Which images of the service may run, and on which machines
/// @notice A compose hash or device that is added counts only after a delay that nobody can shorten. An owner who does
///   not trust a new image sees it here first and has that long to convert, to transfer, or to leave. What is removed
///   stops counting at once.
///
/// Device zero stands for any device. The delay holds for it too.
interface IApplicationAllowlist is IAppAuth, ITwoStepAdmin {
    /// @notice One compose hash or device.
    struct Entry {
        bytes32 value;
        uint256 activeFrom; // unix seconds; counts from this second on
    }

    /// @notice A compose hash will count from `activeFrom` (unix seconds) on.
    event ComposeHashAdded(bytes32 indexed composeHash, uint256 activeFrom);
    /// @notice A compose hash no longer counts, or will not.
    event ComposeHashRemoved(bytes32 indexed composeHash);
    /// @notice A device will count from `activeFrom` (unix seconds) on. Zero: any device.
    event DeviceAdded(bytes32 indexed deviceId, uint256 activeFrom);
    /// @notice A device no longer counts, or will not.
    event DeviceRemoved(bytes32 indexed deviceId);

    /// @notice A delay is longer than `max` seconds: nothing added would ever count.
    error DelayTooLong(uint256 delaySeconds, uint256 max);
    /// @notice SHA-256 gives no zero: a compose hash of zero is a mistake.
    error ZeroComposeHash();
    /// @notice The compose hash is not listed.
    error UnknownComposeHash(bytes32 composeHash);
    /// @notice The device is not listed.
    error UnknownDevice(bytes32 deviceId);

    /// @notice Lists a compose hash, to count after the delay. One that is listed keeps its time.
    /// @dev Emits {ComposeHashAdded}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the hash is not zero (`ZeroComposeHash`).
    /// @param composeHash SHA-256 of the app_compose string.
    function addComposeHash(bytes32 composeHash) external;

    /// @notice Ends a compose hash at once. Added again it waits again.
    /// @dev Emits {ComposeHashRemoved}.
    ///
    /// Notes:
    ///  - A machine that runs keeps running: dstack asks when it boots.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the hash is listed (`UnknownComposeHash`).
    /// @param composeHash SHA-256 of the app_compose string.
    function removeComposeHash(bytes32 composeHash) external;

    /// @notice Lists a device, to count after the delay. One that is listed keeps its time.
    /// @dev Emits {DeviceAdded}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`).
    /// @param deviceId The device, or zero for any device.
    function addDevice(bytes32 deviceId) external;

    /// @notice Ends a device at once. Added again it waits again.
    /// @dev Emits {DeviceRemoved}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the device is listed (`UnknownDevice`).
    /// @param deviceId The device, or zero for any device.
    function removeDevice(bytes32 deviceId) external;

    /// @notice How long an addition waits, in seconds. Set at deployment, for ever.
    function delaySeconds() external view returns (uint256);

    /// @notice Does this compose hash count now?
    function isComposeHashAllowed(bytes32 composeHash) external view returns (bool);

    /// @notice Does this device count now, itself or because any device does?
    function isDeviceAllowed(bytes32 deviceId) external view returns (bool);

    /// @notice Every listed compose hash, waiting ones included, in no promised order.
    function composeHashes() external view returns (Entry[] memory);

    /// @notice Every listed device, waiting ones included, in no promised order.
    function devices() external view returns (Entry[] memory);
}
