// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Budgets: how much code may spend in an hour or a day
/// @notice A counter for each account, action, name and window of time. A lease adds to it, never above the limit that
///   its caller states; nothing takes anything back. Before a keyholder signs what spends, it leases an amount here.
///   The limit it states is the one in the running code, and the owner has permitted that code by its CID: whoever
///   leases something else, with any limit, can use a budget up, but not enlarge it.
///
/// Windows follow the time of the chain: hour n holds the seconds from n·3,600 on, day n those from n·86,400 on. A new
/// window starts at zero, without a transaction.
interface IBudgets {
    /// @notice How long a window is.
    enum Window {
        Hour,
        Day
    }

    /// @notice A lease was added to a counter.
    /// @param id The caller's name for the lease. It is not checked: the same name may appear again, also for other
    ///   counters.
    /// @param counter The counter, see {counterOf}.
    /// @param amount What was added.
    /// @param used The counter after it: the lease holds its units from `used - amount` to `used`.
    event Leased(bytes32 indexed id, bytes32 indexed counter, uint256 amount, uint256 used);

    /// @notice The caller is not an API payer of the account manager.
    error NotAuthorized(address caller);
    /// @notice The lease would raise the counter above the limit.
    error BudgetExceeded(uint256 used, uint256 amount, uint256 limit);

    /// @notice Adds an amount to the counter of the window that the block's time lies in.
    /// @dev Emits {Leased}.
    ///
    /// Notes:
    ///  - Several limits may be stated for one counter. Each caller is held to its own; a lease with a higher one uses
    ///    up what callers with lower ones may have.
    ///  - Amounts and limits are below 2^128, so no sum overflows.
    ///  - A payer that was found to be one counts as one for ten minutes, since asking costs a fifth of a lease.
    ///    Removed meanwhile it can use budgets up for that long.
    ///
    /// Requirements: the caller is an API payer (`NotAuthorized`); the counter and the amount are at most the limit
    /// (`BudgetExceeded`).
    /// @param account The account's id.
    /// @param action The hash of the action's CID.
    /// @param name The budget's name: up to 31 bytes of text, filled with zeros.
    /// @param window Hour or day.
    /// @param amount What to add.
    /// @param limit What the counter may reach by this call.
    /// @param id Any name for the lease.
    function lease(
        uint256 account,
        bytes32 action,
        bytes32 name,
        Window window,
        uint128 amount,
        uint128 limit,
        bytes32 id
    ) external;

    /// @notice The counter in the window that the block's time lies in.
    /// @return used What was leased.
    /// @return timestamp The block's time, which the window follows.
    /// @return blockNumber The block.
    function usedNow(
        uint256 account,
        bytes32 action,
        bytes32 name,
        Window window
    ) external view returns (uint256 used, uint256 timestamp, uint256 blockNumber);

    /// @notice A counter in the window of this number.
    function usedIn(
        uint256 account,
        bytes32 action,
        bytes32 name,
        Window window,
        uint256 index
    ) external view returns (uint256 used);

    /// @notice The name of a counter in events: `keccak256(abi.encode(account, action, name, window, index))`.
    function counterOf(
        uint256 account,
        bytes32 action,
        bytes32 name,
        Window window,
        uint256 index
    ) external pure returns (bytes32 counter);

    /// @notice The account manager whose API payers may lease.
    function accountManager() external view returns (address);
}
