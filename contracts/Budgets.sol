// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {IApiPayers} from "./interfaces/IApiPayers.sol";
import {IBudgets} from "./interfaces/IBudgets.sol";

/// @title Budgets
/// @notice `IBudgets` documents each function. Immutable, without an admin, and it holds no value.
contract Budgets is IBudgets {
    /// @inheritdoc IBudgets
    address public immutable accountManager;

    uint256 private constant CONFIRMED_FOR = 10 minutes;

    mapping(bytes32 counter => uint128) internal _used;
    mapping(address payer => uint256) private _confirmedUntil;

    /// @param accountManager_ The account manager whose API payers may lease.
    constructor(address accountManager_) {
        accountManager = accountManager_;
    }

    /// @inheritdoc IBudgets
    function lease(
        uint256 account,
        bytes32 action,
        bytes32 name,
        Window window,
        uint128 amount,
        uint128 limit,
        bytes32 id
    ) external {
        _requireApiPayer();
        bytes32 counter = counterOf(account, action, name, window, _indexNow(window));
        emit Leased(id, counter, amount, _add(counter, amount, limit));
    }

    /// @inheritdoc IBudgets
    function usedNow(
        uint256 account,
        bytes32 action,
        bytes32 name,
        Window window
    ) external view returns (uint256 used, uint256 timestamp, uint256 blockNumber) {
        used = _used[counterOf(account, action, name, window, _indexNow(window))];
        return (used, block.timestamp, block.number);
    }

    /// @inheritdoc IBudgets
    function usedIn(
        uint256 account,
        bytes32 action,
        bytes32 name,
        Window window,
        uint256 index
    ) external view returns (uint256 used) {
        return _used[counterOf(account, action, name, window, index)];
    }

    /// @inheritdoc IBudgets
    function counterOf(
        uint256 account,
        bytes32 action,
        bytes32 name,
        Window window,
        uint256 index
    ) public pure returns (bytes32 counter) {
        return keccak256(abi.encode(account, action, name, window, index));
    }

    /// @dev Returns the counter after it.
    function _add(bytes32 counter, uint128 amount, uint128 limit) internal returns (uint256 used) {
        used = uint256(_used[counter]) + amount;
        require(used <= limit, BudgetExceeded(used - amount, amount, limit));
        _used[counter] = uint128(used);
    }

    /// @dev Asking the account manager costs a fifth of a lease, so the answer counts for a while.
    function _requireApiPayer() private {
        if (block.timestamp < _confirmedUntil[msg.sender]) return;
        if (!IApiPayers(accountManager).isApiPayer(msg.sender)) revert NotAuthorized(msg.sender);
        _confirmedUntil[msg.sender] = block.timestamp + CONFIRMED_FOR;
    }

    /// @dev The number of the window that the block's time lies in.
    function _indexNow(Window window) private view returns (uint256) {
        return block.timestamp / (window == Window.Hour ? 1 hours : 1 days);
    }
}
