// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {EnumerableMap} from "@openzeppelin/contracts/utils/structs/EnumerableMap.sol";
import {TwoStepAdmin} from "./TwoStepAdmin.sol";
import {IAppAuth} from "./interfaces/IAppAuth.sol";
import {IApplicationAllowlist} from "./interfaces/IApplicationAllowlist.sol";

/// @title ApplicationAllowlist
/// @notice `IApplicationAllowlist` documents each function. Not upgradeable.
contract ApplicationAllowlist is TwoStepAdmin, IApplicationAllowlist, IERC165 {
    using EnumerableMap for EnumerableMap.Bytes32ToUintMap;

    bytes32 private constant ANY_DEVICE = 0;
    uint256 private constant MAX_DELAY = 365 days;

    /// @inheritdoc IApplicationAllowlist
    uint256 public immutable delaySeconds;

    // value → the second from which it counts
    EnumerableMap.Bytes32ToUintMap private _composeHashes;
    EnumerableMap.Bytes32ToUintMap private _devices;

    /// @param firstAdmin Who may add and remove.
    /// @param delaySeconds_ How long an addition waits; what is given here counts at once.
    /// @param composeHashes_ The first images.
    /// @param devices_ The first devices; one zero for any device.
    constructor(address firstAdmin, uint256 delaySeconds_, bytes32[] memory composeHashes_, bytes32[] memory devices_) {
        _requireAddress(firstAdmin);
        _appoint(firstAdmin);
        if (delaySeconds_ > MAX_DELAY) revert DelayTooLong(delaySeconds_, MAX_DELAY);
        delaySeconds = delaySeconds_;
        for (uint256 i = 0; i < composeHashes_.length; i++) _addComposeHash(composeHashes_[i], block.timestamp);
        for (uint256 i = 0; i < devices_.length; i++) _addDevice(devices_[i], block.timestamp);
    }

    // -------------------------------------------------------------------------------------------------------- decision

    /// @dev The application id is not checked: dstack asks the contract at that address. dstack itself judges the TCB
    ///   status.
    /// @inheritdoc IAppAuth
    function isAppAllowed(AppBootInfo calldata bootInfo) external view returns (bool isAllowed, string memory reason) {
        if (!isComposeHashAllowed(bootInfo.composeHash)) {
            bool waits = _composeHashes.contains(bootInfo.composeHash);
            return (
                false,
                waits
                    ? "The compose hash is listed but does not count yet."
                    : "The compose hash is not on the allow-list."
            );
        }
        if (!isDeviceAllowed(bootInfo.deviceId)) return (false, "The device is not on the allow-list.");
        return (true, "");
    }

    /// @inheritdoc IApplicationAllowlist
    function isComposeHashAllowed(bytes32 composeHash) public view returns (bool) {
        return _counts(_composeHashes, composeHash);
    }

    /// @inheritdoc IApplicationAllowlist
    function isDeviceAllowed(bytes32 deviceId) public view returns (bool) {
        return _counts(_devices, deviceId) || _counts(_devices, ANY_DEVICE);
    }

    /// @inheritdoc IERC165
    function supportsInterface(bytes4 interfaceId) external pure returns (bool) {
        return interfaceId == type(IAppAuth).interfaceId || interfaceId == type(IERC165).interfaceId;
    }

    // ---------------------------------------------------------------------------------------------------------- writes

    /// @inheritdoc IApplicationAllowlist
    function addComposeHash(bytes32 composeHash) external onlyAdmin {
        _addComposeHash(composeHash, block.timestamp + delaySeconds);
    }

    /// @inheritdoc IApplicationAllowlist
    function removeComposeHash(bytes32 composeHash) external onlyAdmin {
        if (!_composeHashes.remove(composeHash)) revert UnknownComposeHash(composeHash);
        emit ComposeHashRemoved(composeHash);
    }

    /// @inheritdoc IApplicationAllowlist
    function addDevice(bytes32 deviceId) external onlyAdmin {
        _addDevice(deviceId, block.timestamp + delaySeconds);
    }

    /// @inheritdoc IApplicationAllowlist
    function removeDevice(bytes32 deviceId) external onlyAdmin {
        if (!_devices.remove(deviceId)) revert UnknownDevice(deviceId);
        emit DeviceRemoved(deviceId);
    }

    // ----------------------------------------------------------------------------------------------------------- views

    /// @inheritdoc IApplicationAllowlist
    function composeHashes() external view returns (Entry[] memory) {
        return _entries(_composeHashes);
    }

    /// @inheritdoc IApplicationAllowlist
    function devices() external view returns (Entry[] memory) {
        return _entries(_devices);
    }

    // --------------------------------------------------------------------------------------------------------- helpers

    function _addComposeHash(bytes32 composeHash, uint256 activeFrom) private {
        if (composeHash == 0) revert ZeroComposeHash();
        if (_composeHashes.contains(composeHash)) return;
        _composeHashes.set(composeHash, activeFrom);
        emit ComposeHashAdded(composeHash, activeFrom);
    }

    function _addDevice(bytes32 deviceId, uint256 activeFrom) private {
        if (_devices.contains(deviceId)) return;
        _devices.set(deviceId, activeFrom);
        emit DeviceAdded(deviceId, activeFrom);
    }

    function _counts(EnumerableMap.Bytes32ToUintMap storage map, bytes32 value) private view returns (bool) {
        (bool listed, uint256 activeFrom) = map.tryGet(value);
        return listed && block.timestamp >= activeFrom;
    }

    function _entries(EnumerableMap.Bytes32ToUintMap storage map) private view returns (Entry[] memory entries) {
        entries = new Entry[](map.length());
        for (uint256 i = 0; i < entries.length; i++) (entries[i].value, entries[i].activeFrom) = map.at(i);
    }
}
