// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Account, Action, Group, Pkp, UsageKey} from "../types/AccountStorage.sol";
import {Text, Texts} from "./Texts.sol";

/// @title Name and description of each kind of record
/// @notice `label` stores both strings, whose lengths the caller has checked, and returns whether anything changed.
library Labels {
    using Texts for Text;

    function label(
        Account storage account,
        string calldata name,
        string calldata description
    ) internal returns (bool changed) {
        (account.lengths, changed) = account.text.set(account.lengths, name, description);
    }

    function label(
        UsageKey storage key,
        string calldata name,
        string calldata description
    ) internal returns (bool changed) {
        (key.head.lengths, changed) = key.text.set(key.head.lengths, name, description);
    }

    function label(
        Group storage group,
        string calldata name,
        string calldata description
    ) internal returns (bool changed) {
        (group.lengths, changed) = group.text.set(group.lengths, name, description);
    }

    function label(
        Action storage action,
        string calldata name,
        string calldata description
    ) internal returns (bool changed) {
        (action.lengths, changed) = action.text.set(action.lengths, name, description);
    }

    function label(Pkp storage pkp, string calldata name, string calldata description) internal returns (bool changed) {
        (pkp.lengths, changed) = pkp.text.set(pkp.lengths, name, description);
    }

    function isLabelled(
        Pkp storage pkp,
        string calldata name,
        string calldata description
    ) internal view returns (bool) {
        return pkp.text.equals(pkp.lengths, name, description);
    }
}
