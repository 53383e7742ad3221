// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ScheduledPayer} from "../types/AccountTypes.sol";
import {IAccountErrors} from "./IAccountErrors.sol";
import {ITwoStepAdmin} from "./ITwoStepAdmin.sol";

/// @title The API payers and who appoints them
/// @notice The contract admin (see ITwoStepAdmin) appoints the API payers, and so reaches managed accounts, never
///   unmanaged ones. From the first managed account on, what is added counts only after `payerDelaySeconds`: whoever
///   does not trust it has that long to leave.
interface IApiPayers is IAccountErrors, ITwoStepAdmin {
    /// @notice An address may act as an API payer, from now on.
    event ApiPayerAdded(address indexed payer);
    /// @notice An address may act as an API payer from `activeFrom` (unix seconds) on, unless it is removed before.
    event ApiPayerScheduled(address indexed payer, uint256 activeFrom);
    /// @notice An address may no longer act as an API payer, or will not.
    event ApiPayerRemoved(address indexed payer);
    /// @notice The address that funds the API payers was set.
    event AdminApiPayerSet(address indexed payer);
    /// @notice Another address funds the API payers from `activeFrom` (unix seconds) on, unless that is cancelled
    ///   before.
    event AdminApiPayerScheduled(address indexed payer, uint256 activeFrom);
    /// @notice A scheduled address will not fund the API payers.
    event AdminApiPayerCancelled(address indexed payer);

    /// @notice Adds an API payer, which may act on every managed account: at once until a managed account exists, then
    ///   after the delay. One that was added before keeps its time.
    /// @dev Emits {ApiPayerAdded} if it acts at once, else {ApiPayerScheduled}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the address is neither zero (`ZeroAddress`) nor the
    /// forwarder (`ForwarderNotAllowed`).
    /// @param payer The address.
    function addApiPayer(address payer) external;

    /// @notice Ends the rights of an API payer at once, or cancels an addition that is scheduled. Added again it waits
    ///   again.
    /// @dev Emits {ApiPayerRemoved}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the address was added (`UnknownApiPayer`).
    /// @param payer The address.
    function removeApiPayer(address payer) external;

    /// @notice Sets the address that funds the API payers, with the delay of an API payer. It has no rights in this
    ///   contract.
    /// @dev Emits {AdminApiPayerSet} if it takes effect at once, else {AdminApiPayerScheduled}. The present one, or one
    ///   that is scheduled, keeps its time; another replaces one that is scheduled.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); the address is neither zero (`ZeroAddress`) nor the
    /// forwarder (`ForwarderNotAllowed`).
    /// @param payer The address.
    function setAdminApiPayer(address payer) external;

    /// @notice Cancels the scheduled address that would fund the API payers.
    /// @dev Emits {AdminApiPayerCancelled}.
    ///
    /// Requirements: the caller is the admin (`NotAdmin`); one is scheduled (`NothingToCancel`).
    function cancelAdminApiPayer() external;

    /// @notice How long an addition of a payer waits. 0: additions act at once, and owners have no time to leave.
    function payerDelaySeconds() external view returns (uint256);

    /// @notice Whether an address acts as an API payer at this block.
    function isApiPayer(address payer) external view returns (bool);

    /// @notice The addresses that act as API payers at this block, in no promised order.
    function apiPayers() external view returns (address[] memory);

    /// @notice The API payers that were added and do not act yet, in no promised order.
    function scheduledApiPayers() external view returns (ScheduledPayer[] memory);

    /// @notice The address that funds the API payers at this block; zero until it is set.
    function adminApiPayer() external view returns (address);

    /// @notice The address that will fund the API payers; zero if none is scheduled.
    function scheduledAdminApiPayer() external view returns (ScheduledPayer memory);
}
