/** Why the contract permits a run, or refuses it. */
import { KeywrightError } from "../../protocol/errors";
import { actionHashOf, ZERO_HASH, type ActionHash, type KeyId } from "../../protocol/ids";
import { opNames } from "../../protocol/ops";
import type { DenialReason } from "../../protocol/decision";
import type { Answer, HandlersOf } from "../middleware/call";
import type { RouteDeps } from "./deps";
import { pkpAddress } from "./references";

type Why = Answer<"explainExecution">;

const WORDS: Record<DenialReason, readonly [Why["reason"], string]> = {
  None: ["none", "The key may run this action."],
  UnknownKey: ["unknown_key", "The account has no such key, or it has been revoked."],
  KeyExpired: ["key_expired", "The key has expired."],
  AccountChainSecured: ["account_chain_secured", "The account key ended when the account was converted."],
  NoExecuteScope: ["no_execute_scope", "The key may not run actions in any group of the account."],
  ActionNotPermitted: ["action_not_permitted", "No group in which the key may run lists this action."],
  UnknownPkp: ["unknown_pkp", "The account has no such PKP."],
  PkpNotPermitted: ["pkp_not_permitted", "No group in which the key may run lists both this action and this PKP."],
  AccountFrozen: ["account_frozen", "The account is frozen: none of its keys can run anything."],
};

export function explainRoutes({ chain }: RouteDeps): HandlersOf<"explainExecution"> {
  return {
    explainExecution: async ({ caller, query }) => {
      const { api_key_hash: key, hashed_cid: hash, action_ipfs_cid: cid, pkp_id: pkp } = query;
      const action = cid === undefined ? hash : actionHashOf(cid);
      const decision = await chain.explainExecution(
        key as string as KeyId,
        action ?? (ZERO_HASH as ActionHash),
        pkp && (await pkpAddress(chain, caller.accountId, pkp)),
      );
      const { accountId, allowed, actionByName, deniedOps, blockNumber } = decision;
      // Keys of other accounts look like keys that do not exist.
      if (accountId !== caller.accountId)
        throw new KeywrightError("unknown_usage_key", "The account has never had a key of this hash.");
      const [reason, detail] = WORDS[decision.reason];
      return {
        allowed,
        reason,
        detail,
        action_by_name: actionByName,
        denied_ops: opNames(deniedOps),
        block_number: Number(blockNumber),
      };
    },
  };
}
