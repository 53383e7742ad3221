/**
 * The execution check: the keyholder asks the contract itself, at the newest block, and turns a denial into the code that names what failed.
 * Source: specification §1 "Execution check"; design of the executor, "Keyholder".
 */
import type { Decision, DenialReason } from "../protocol/decision";
import { KeywrightError, type ErrorCode } from "../protocol/errors";
import { actionHashOf } from "../protocol/ids";
import type { AccountId, Cid, KeyId, PkpId } from "../protocol/ids";
import type { Caller } from "./callers";
import type { Chain } from "./chain/chain";

/** What a run is allowed; `keyId` is the reading of the credential that the contract knows. */
export interface Authorization {
  readonly keyId: KeyId | AccountId;
  readonly cid: Cid;
  readonly decision: Decision;
}

/** A permission is as old as the question: whatever waited for longer is asked about again when it starts, or is used for the first time. */
const FRESH_MS = 1_000;

/** @param askedAt On the clock of `performance`. */
export const isFresh = (askedAt: number): boolean => performance.now() - askedAt < FRESH_MS;

interface Denial {
  readonly code: ErrorCode;
  readonly failed: "key" | "group" | "action" | "pkp";
  readonly detail: string;
}

const DENIALS: Record<Exclude<DenialReason, "None">, Denial> = {
  UnknownKey: { code: "unknown_key", failed: "key", detail: "The contract knows no such key, or it was revoked." },
  KeyExpired: { code: "unknown_key", failed: "key", detail: "The key has expired." },
  AccountChainSecured: {
    code: "account_chain_secured",
    failed: "key",
    detail: "The account is ChainSecured: its account key is no credential any more; use a usage key.",
  },
  AccountFrozen: { code: "account_frozen", failed: "key", detail: "The account's owner has frozen it: no key of it can act." },
  NoExecuteScope: { code: "no_execute_scope", failed: "group", detail: "The key may not execute in any existing group of its account." },
  ActionNotPermitted: { code: "action_not_permitted", failed: "action", detail: "No group in which the key may execute lists this action." },
  UnknownPkp: { code: "pkp_not_permitted", failed: "pkp", detail: "The key's account has no such PKP." },
  PkpNotPermitted: { code: "pkp_not_permitted", failed: "pkp", detail: "No single group in which the key may execute lists both this action and this PKP." },
};

/**
 * May the caller run this code (with this PKP)? One call to the contract; a second only for a key known by its decoded bytes.
 * @throws KeywrightError 401 or 403 with the fact `failed`: key, group, action or pkp; `chain_unavailable`.
 */
export async function authorizeRun(chain: Chain, caller: Caller, cid: Cid, pkpId?: PkpId): Promise<Authorization> {
  const action = actionHashOf(cid);
  const [usual, other] = caller.ids;
  let keyId = usual;
  let decision = await chain.explain(keyId, action, pkpId);
  if (other !== undefined && decision.reason === "UnknownKey") {
    keyId = other;
    decision = await chain.explain(keyId, action, pkpId);
  }
  if (!decision.allowed) throw denial(decision);
  return { keyId, cid, decision };
}

/** May the run go on to use this PKP? Asked once for each PKP of a run, at its first use; the answer holds until the run ends. */
export async function authorizePkp(chain: Chain, run: Authorization, pkpId: PkpId): Promise<Decision> {
  const decision = await chain.explain(run.keyId, actionHashOf(run.cid), pkpId);
  if (!decision.allowed || decision.accountId !== run.decision.accountId) throw denial(decision);
  return decision;
}

function denial(decision: Decision): KeywrightError {
  if (decision.reason === "None") return new KeywrightError("chain_unavailable", "The contract's answer contradicts itself.");
  const { code, failed, detail } = DENIALS[decision.reason];
  return new KeywrightError(code, detail, { failed });
}
