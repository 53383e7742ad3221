// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccountCore} from "./IAccountCore.sol";
import {IAccountLists} from "./IAccountLists.sol";
import {IApiPayers} from "./IApiPayers.sol";

/// @title Who may use which key through which code
/// @notice Accounts own PKPs, groups, actions and usage keys. A group binds PKPs to actions; a key's scopes say in
///   which groups it may act. The executor asks `explainExecution` before every run.
///
/// Ids. An account id (`apiKeyHash`) is the keccak256 of the account key's text (API mode) or of the packed address of
/// the creating wallet (ChainSecured mode). A key id is the keccak256 of the key's bytes. An action id is the keccak256
/// of the CID text. A PKP id is its address. Group ids count from 1 in each account and are never used again.
///
/// Zero. In a key's list of groups, 0 is "every existing group of the account, later ones included". INSIDE A GROUP,
/// ACTION 0 IS "ANY ACTION" AND PKP address(0) IS "ANY PKP OF THIS ACCOUNT": whoever may run in such a group may run
/// any code with its PKPs, or its code with any PKP of the account. Only the owner may add or remove these two. Nowhere
/// else is zero an id.
///
/// Who may write. Every function that takes an account or key id is authorized in one place:
///  - the owner (`adminWalletAddress`) with the account id: everything on its account;
///  - an API payer with the id of a managed account: what the owner may;
///  - an API payer with the id of a live usage key of a managed account: what the key's scopes allow;
///  - an API payer on an unmanaged account: `AccountChainSecured`;
///  - anybody else: `NotAuthorized`. An id means the account of that id if there is one, else the usage key. "Owner
///    only" below means that a usage key is refused with `MissingScope(OwnerOnly, …)` before anything else is looked
///    at; "scope X" that it needs that scope. The errors of authorization come first in every function:
///    `NotAuthorized`, `UnknownAccount`, `AccountChainSecured`, `UnknownUsageKey` (revoked), `KeyExpired`,
///    `AccountFrozen`, `MissingScope`.
///
/// Who the caller is. The sender of the call, or who signed the request that the trusted forwarder (ERC-2771) passes
/// on: an owner may pay no gas. API payers and the contract admin act only as senders.
///
/// Adding what is there and setting equal values succeeds and emits nothing. Removing what is not there reverts. Names
/// are at most 128 bytes, descriptions at most 1,024 (`StringTooLong`).
///
/// Events carry as their last field the actor: the account id or usage key id that was authenticated.
interface IAccountManager is IAccountCore, IApiPayers, IAccountLists {
    /// @notice The ERC-2771 forwarder through which an owner may act by signature, for ever. API payers and the
    ///   contract admin cannot.
    function trustedForwarder() external view returns (address);
}
