// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {AccountRules} from "./AccountRules.sol";
import {IAccountCore} from "./interfaces/IAccountCore.sol";
import {Column, GroupList, GroupRegister, GroupSets} from "./libraries/GroupSets.sol";
import {Account, Wallet} from "./types/AccountStorage.sol";
import {DenialReason, Scope} from "./types/AccountTypes.sol";

/// @title Decisions: may a key run an action and use a PKP
/// @notice A decision is an AND of words: groups in which the key executes ∧ groups that exist ∧ groups that list the
///   action ∧ groups that list the PKP, 224 groups at a time.
abstract contract AccountDecisions is AccountRules, IAccountCore {
    using GroupSets for GroupRegister;
    using GroupSets for Column;
    using GroupSets for GroupList;

    struct Verdict {
        bool keyExecutes; // in an existing group
        bool actionListed; // by one of those groups
        bool allowed;
        bool byName;
    }

    /// @inheritdoc IAccountCore
    function canExecuteAction(uint256 key, uint256 cid) external view returns (bool) {
        (DenialReason reason, , ) = _decide(key, cid, address(0));
        return reason == DenialReason.None;
    }

    /// @inheritdoc IAccountCore
    function canUseWalletInAction(uint256 key, uint256 cid, address pkp) external view returns (bool) {
        (DenialReason reason, , ) = _decide(key, cid, pkp);
        return reason == DenialReason.None && pkp != address(0);
    }

    /// @inheritdoc IAccountCore
    function explainExecution(
        uint256 key,
        uint256 cid,
        address pkp
    )
        external
        view
        returns (
            bool allowed,
            DenialReason reason,
            bool actionByName,
            uint256 accountId,
            uint256 derivationPath,
            uint256 blockNumber,
            uint256 blockTimestamp,
            uint256 deniedOps
        )
    {
        (reason, actionByName, accountId) = _decide(key, cid, pkp);
        allowed = reason == DenialReason.None;
        if (_isPkp(_accounts[accountId], pkp)) {
            derivationPath = _pathOf(accountId, pkp);
            deniedOps = _accounts[accountId].wallets[pkp].deniedOps;
        }
        (blockNumber, blockTimestamp) = (block.number, block.timestamp);
    }

    /// @dev Decides for all three views. With `pkp` zero, only key and action are checked.
    function _decide(
        uint256 key,
        uint256 cid,
        address pkp
    ) private view returns (DenialReason reason, bool byName, uint256 accountId) {
        Subject memory subject = _subject(key);
        accountId = subject.accountId;
        if (subject.denial != DenialReason.None) return (subject.denial, false, accountId);
        if (subject.frozen) return (DenialReason.AccountFrozen, false, accountId);
        Account storage account = _accounts[accountId];
        Verdict memory verdict = _judge(account, key, subject, cid, pkp);
        reason = _reason(verdict, cid, pkp != address(0) && !_isPkp(account, pkp));
        byName = verdict.byName && reason == DenialReason.None;
    }

    /// @dev Scans the account's groups in words of 224. Stops once a group that lists the action by name allows the
    ///   run.
    function _judge(
        Account storage account,
        uint256 key,
        Subject memory subject,
        uint256 cid,
        address pkp
    ) private view returns (Verdict memory verdict) {
        GroupList storage list = _usageKeys[key].lists[Scope.Execute];
        bool everywhere = subject.isAccountKey || list.has(subject.generation, 0);
        uint256 words = account.groupsThatExist.wordCount();
        Column storage action = account.actions[cid];
        Column storage wallet = account.wallets[pkp].column;
        Column storage anyPkp = account.wallets[address(0)].column;
        (uint256 actionIndex, uint256 pkpIndex) = (action.index, wallet.index);
        for (uint256 i = 0; i < words; i++) {
            uint256 groups = account.groupsThatExist.at(i);
            if (!everywhere) groups &= list.at(subject.generation, i);
            if (groups == 0) continue;
            verdict.keyExecutes = true;
            uint256 byName = groups & action.at(actionIndex, i);
            uint256 withPkp = pkp == address(0) ? groups : groups & wallet.at(pkpIndex, i);
            if (byName & withPkp == 0) {
                // otherwise a wildcard cannot change the result
                groups &= byName | account.actions[0].at(0, i);
                if (groups == 0) continue;
                if (pkp != address(0)) withPkp |= anyPkp.at(0, i);
            }
            verdict.actionListed = true;
            if (groups & withPkp == 0) continue;
            verdict.allowed = true;
            verdict.byName = byName & withPkp != 0;
            if (verdict.byName) break;
        }
    }

    /// @dev Returns the first rule that fails. 0 is no action id: inside a group it means "any action".
    function _reason(Verdict memory verdict, uint256 cid, bool pkpUnknown) private pure returns (DenialReason) {
        if (!verdict.keyExecutes) return DenialReason.NoExecuteScope;
        if (!verdict.actionListed || cid == 0) return DenialReason.ActionNotPermitted;
        if (pkpUnknown) return DenialReason.UnknownPkp;
        return verdict.allowed ? DenialReason.None : DenialReason.PkpNotPermitted;
    }
}
