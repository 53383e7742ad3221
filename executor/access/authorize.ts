/**
 * The execution check: reads the permission from the contract at the newest block and maps a denial to an error code
 * that names what failed.
 */
import type { Admission } from "../../protocol/admission";
import type { Decision, DenialReason } from "../../protocol/decision";
import { KeywrightError, type ErrorCode } from "../../protocol/errors";
import { actionHashOf } from "../../protocol/ids";
import type { AccountId, Cid, KeyId, PkpId } from "../../protocol/ids";
import type { KeyState } from "../../protocol/keyState";
import type { Caller } from "./callers";
import type { Chain } from "../chain/chain";
import { sharedRead } from "../chain/sharedReads";

/** The permission of a run; `keyId` is the key id that the contract knows (see `Caller.ids`). */
export interface Authorization {
  readonly keyId: KeyId | AccountId;
  readonly cid: Cid;
  readonly decision: Decision;
  readonly ahead?: DecidedAhead;
  /** The key that has fired the trigger whose key this is: it pays, and only what both may use is permitted. */
  readonly firedBy?: Pick<Permitted, "keyId" | "key">;
}

/** The decision about a PKP that the run has not asked for yet. */
export interface DecidedAhead {
  readonly pkpId: PkpId;
  readonly decision: Decision;
  /** When the contract was asked, in milliseconds of `performance.now()`. */
  readonly askedAt: number;
}

/** An authorization together with the contract's state of the key. */
export interface Permitted extends Authorization {
  readonly key: KeyState;
}

/** The contract denies a run to a key that it knows. */
export class RunDenied extends KeywrightError {
  constructor(
    { code, detail, facts }: KeywrightError,
    readonly key: KeyState,
    readonly decision: Decision,
  ) {
    super(code, detail, facts);
  }
}

/**
 * How long a permission is valid after the contract was asked. After a longer wait it is read again before the run
 * starts or first uses the permission.
 */
const FRESH_MS = 1_000;

/** @param askedAt in milliseconds of `performance.now()`. */
export const isFresh = (askedAt: number): boolean => performance.now() - askedAt < FRESH_MS;

interface Denial {
  readonly code: ErrorCode;
  readonly failed: "key" | "group" | "action" | "pkp";
  readonly detail: string;
}

const DENIALS: Record<Exclude<DenialReason, "None">, Denial> = {
  UnknownKey: { code: "unknown_key", failed: "key", detail: "This key is unknown here or has been revoked." },
  KeyExpired: { code: "key_expired", failed: "key", detail: "This key has expired." },
  AccountChainSecured: {
    code: "account_chain_secured",
    failed: "key",
    detail: "This key is no longer a credential of the account.",
  },
  AccountFrozen: {
    code: "account_frozen",
    failed: "key",
    detail: "The account's owner has frozen it: no key of it can act until the owner ends that.",
  },
  NoExecuteScope: {
    code: "no_execute_scope",
    failed: "group",
    detail: "The key may not execute in any existing group of the account: give it execute_in_groups.",
  },
  ActionNotPermitted: {
    code: "action_not_permitted",
    failed: "action",
    detail: "No group where the key executes lists this action: add its CID to one.",
  },
  UnknownPkp: { code: "pkp_not_permitted", failed: "pkp", detail: "The account has no such PKP." },
  PkpNotPermitted: {
    code: "pkp_not_permitted",
    failed: "pkp",
    detail: "No group where the key executes lists both this action and this PKP.",
  },
};

/** An account key executes in every group. */
const NO_GROUP = "The account has no group: add one (add_group) that lists this action and the PKPs that it may use.";

/** What a run needs permission for. */
export interface RunQuestion {
  readonly cid: Cid;
  readonly pkpId: PkpId | undefined;
  /** A PKP that the run is likely to use. */
  readonly ahead: PkpId | undefined;
  /** The answer must be of this block or a later one. The contract is asked before it is known. */
  readonly notBefore: Promise<number>;
}

/**
 * Whether the caller may run this code (with this PKP). One call to the contract, a second only if the usual key id is
 * unknown.
 * @throws KeywrightError 401 or 403 with the facts `failed` (key, group, action or pkp) and `action_ipfs_cid`; a
 * `RunDenied` if the contract knows the key; `chain_unavailable`.
 */
export async function authorizeRun(
  chain: Chain,
  caller: Pick<Caller, "ids">,
  question: RunQuestion,
): Promise<Permitted> {
  const { cid, ahead: pkpAhead } = question;
  const askedAt = performance.now();
  const ask = (id: KeyId | AccountId): Promise<Admission> => chain.admit(id, actionHashOf(cid), question);
  const [usual, other]: readonly [KeyId | AccountId, KeyId?] = caller.ids;
  let keyId = usual;
  let { decision, key, ahead } = await ask(keyId);
  if (other !== undefined && decision.reason === "UnknownKey") {
    keyId = other;
    ({ decision, key, ahead } = await ask(keyId));
  }
  if (!decision.allowed) {
    const denied = denial(decision, keyId, { action_ipfs_cid: cid });
    throw key === undefined ? denied : new RunDenied(denied, key, decision);
  }
  if (key?.accountId !== decision.accountId) throw contradiction();
  if (pkpAhead === undefined || ahead === undefined) return { keyId, cid, decision, key };
  return { keyId, cid, decision, key, ahead: { pkpId: pkpAhead, decision: ahead, askedAt } };
}

/**
 * Whether the run may also use this PKP: read at its first use, unless a fresh answer came with the run's permission;
 * valid until the run ends.
 * @throws KeywrightError 403, `chain_unavailable`.
 */
export async function authorizePkp(
  chain: Chain,
  run: Authorization,
  pkpId: PkpId,
  over?: AbortSignal,
): Promise<Decision> {
  const ask = (): Promise<Decision> => chain.explain(run.keyId, actionHashOf(run.cid), pkpId);
  const decision = decidedAhead(run, pkpId) ?? (await sharedRead(run.decision.accountId, over, ask));
  if (!decision.allowed || decision.accountId !== run.decision.accountId) throw denial(decision, run.keyId);
  const { keyId, cid, decision: ofRun, firedBy } = run;
  if (firedBy === undefined || firedBy.keyId === keyId) return decision;
  const { actionByName } = await authorizePkp(chain, { ...firedBy, cid, decision: ofRun }, pkpId, over);
  return { ...decision, actionByName: decision.actionByName && actionByName };
}

function decidedAhead({ ahead }: Authorization, pkpId: PkpId): Decision | undefined {
  return ahead?.pkpId === pkpId && isFresh(ahead.askedAt) ? ahead.decision : undefined;
}

function denial(decision: Decision, keyId: KeyId | AccountId, facts: Record<string, unknown> = {}): KeywrightError {
  if (decision.reason === "None") return contradiction();
  const { code, failed, detail } = DENIALS[decision.reason];
  const hasNoGroup = decision.reason === "NoExecuteScope" && decision.accountId === keyId;
  return new KeywrightError(code, hasNoGroup ? NO_GROUP : detail, { failed, ...facts });
}

const contradiction = (): KeywrightError =>
  new KeywrightError("chain_unavailable", "The contract's answer contradicts itself.");
