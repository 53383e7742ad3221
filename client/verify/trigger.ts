/** Checks that a key id is the one of a trigger's definition, as the keyholder states it. For Node. */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { parseCid } from "../../protocol/cidText";
import { TRIGGER_STATEMENT_TYPE, hookSchema, eventSchema, scheduleSchema } from "../../protocol/trigger";
import { signedPayload } from "./receipt";
import { Malformed, jsonOf } from "./types";

/** What the service answered, and what was asked for. */
export interface MintedFor {
  readonly minted: { readonly id: string; readonly api_key_hash: string; readonly statement: string };
  readonly accountId: string;
  readonly actionIpfsCid: string;
  /** As given to `createTrigger`. */
  readonly fields: {
    readonly params?: unknown;
    readonly schedule?: unknown;
    readonly event?: unknown;
    readonly hook?: unknown;
  };
}

/**
 * Check this before attaching the key of a trigger: the keyholder states that it is the key of exactly this account,
 * action, params and settings. A hook's secret is not part of it.
 * @param config the document that `recordService` or `verifyEvidence` returns where a genuine quote covers it
 * @throws Malformed naming what differs
 */
export async function verifyTriggerStatement(
  { minted, accountId, actionIpfsCid, fields }: MintedFor,
  config: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { statement_key: statementKey } = config;
  if (typeof statementKey !== "string") throw new Malformed("the config document names no statement key");
  const name = "trigger's statement";
  const payload = await signedPayload(minted.statement, statementKey, TRIGGER_STATEMENT_TYPE, name);
  const claims = jsonOf(payload, `the ${name}`) as Record<string, unknown>;
  const params = JSON.stringify(fields.params ?? {});
  const wanted: Record<string, unknown> = {
    v: 1,
    account_id: accountId.toLowerCase(),
    api_key_hash: minted.api_key_hash,
    trigger_id: minted.id,
    action_ipfs_cid: parseCid(actionIpfsCid) ?? actionIpfsCid,
    params_sha256: createHash("sha256").update(params, "utf8").digest("hex"),
    ...settingsOf(fields),
  };
  for (const member of new Set([...Object.keys(wanted), ...Object.keys(claims)]))
    if (canonicalize(claims[member]) !== canonicalize(wanted[member]))
      throw new Malformed(`the ${name} is of another trigger: ${member} differs`);
}

function settingsOf({ schedule, event, hook }: MintedFor["fields"]): object {
  if (schedule !== undefined) return { schedule: scheduleSchema.parse(schedule) };
  if (event !== undefined) return { event: eventSchema.parse(event) };
  const { secret: _, ...shown } = hookSchema.parse(hook ?? {});
  return { hook: shown };
}
