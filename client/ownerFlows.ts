/**
 * One-call versions of a ChainSecured owner's two-step operations (mint over HTTP, then a transaction). Each step can
 * be resumed: a mint's result is plain data without the secret, and the second step is idempotent.
 * Source: docs/conformance.md §3.
 */
import type { AskContract } from "./contract";
import { ClientError, refuse, withFacts } from "./errors";
import { toKeyId } from "./fields";
import type { CallOptions } from "./transport";
import type { Answer, Body } from "./wire";
import type {
  MintedUsageKey,
  MintedWallet,
  NamedThing,
  OwnerWrite,
  OwnerWrites,
  Sent,
  UsageKeyPermissions,
} from "./writes";
import { defined } from "../protocol/defined";
import type { AccountId } from "../protocol/ids";
import { RUNS_ONLY, TRIGGER_DESCRIPTION } from "../protocol/updates";

export type Progress<Minted> =
  /**
   * The mint is done. Store its secret now, it is shown only here: `usage_api_key` of a usage key, and a trigger's
   * `minted.hook_secret`.
   */
  | { readonly step: "minted"; readonly minted: Minted; readonly usage_api_key?: string }
  /** The transaction is simulated and sent. */
  | { readonly step: "sending" }
  | { readonly step: "done"; readonly transaction_hash: string };

export interface FlowOptions<Minted> extends CallOptions {
  /** Awaited, so that a secret can be stored before anything else happens. */
  readonly onProgress?: (progress: Progress<Minted>) => void | Promise<void>;
}

export interface OwnerFlows {
  /** Mints a PKP and registers it. When the second step fails, pass `error.facts.minted` to `registerPkp`. */
  createPkp(
    strings?: Partial<NamedThing>,
    options?: FlowOptions<MintedWallet>,
  ): Promise<Sent<MintedWallet & { pkp_id: string }>>;
  /**
   * Mints a usage key and attaches it. If another account front-runs the key's id, another key is minted, a few times.
   * If the second step fails, pass `error.facts.minted` to `attachUsageKey`; the secret was in the progress.
   */
  createUsageKey(
    permissions: UsageKeyPermissions,
    options?: FlowOptions<MintedUsageKey>,
  ): Promise<Sent<MintedUsageKey & { usage_api_key: string }>>;
  /**
   * Makes a trigger and attaches its key, which only the keyholder knows. When the second step fails, pass
   * `error.facts.minted` to `attachUsageKey`, with the description `trigger`; a `hook_secret` was in the progress
   * alone. The service is trusted to name the trigger's own key: see `prepareTrigger` and `verifyTriggerStatement`.
   */
  createTrigger(fields: TriggerFields, options?: FlowOptions<MintedTrigger>): Promise<Sent<MintedTrigger>>;
  /**
   * Revokes the trigger's key on the chain, then deletes the trigger. A key that the chain does not describe as
   * `trigger` is refused as `invalid_argument`: the service may have named another one.
   */
  deleteTrigger(trigger: { id: string; api_key_hash: string }): Promise<{ success: true; api_key_hash: string }>;
}

/** The fields of a trigger, and what its key may do. */
export type TriggerFields = Body<"createTrigger">;
export type MintedTrigger = Answer<"createTrigger">;

/** The write with which an owner attaches a trigger's key. */
export function attachTrigger(
  prepare: OwnerWrites,
  minted: MintedTrigger,
  { name, execute_in_groups = [0], expiration, balance }: TriggerFields,
) {
  const permissions = { ...RUNS_ONLY, name, description: TRIGGER_DESCRIPTION, execute_in_groups };
  return prepare.attachUsageKey(minted, { ...permissions, ...defined({ expiration, balance }) });
}

interface FlowParts {
  createTrigger(fields: TriggerFields, options?: CallOptions): Promise<MintedTrigger>;
  deleteTrigger(trigger: { id: string }, options?: CallOptions): Promise<Answer<"deleteTrigger">>;
  readonly prepare: OwnerWrites;
  readonly accountId: AccountId;
  readonly ask: AskContract;
  mintPkp(options?: CallOptions): Promise<MintedWallet>;
  mintUsageKey(options?: CallOptions): Promise<{ usage_api_key: string; minted: MintedUsageKey }>;
  send<Result extends object>(write: OwnerWrite<Result>): Promise<Sent<Result>>;
  check(write: OwnerWrite): Promise<void>;
  /** Throws when there is no way to send, before anything is minted. */
  sender(): unknown;
}

export function ownerFlows({ prepare, mintPkp, mintUsageKey, send, check, sender, ...parts }: FlowParts): OwnerFlows {
  return {
    createTrigger: async (fields, { onProgress, ...options } = {}) => {
      sender();
      const minted = await parts.createTrigger(fields, options);
      await onProgress?.({ step: "minted", minted });
      const sent = await secondHalf(minted, onProgress, async () => send(await attachTrigger(prepare, minted, fields)));
      return { ...minted, ...sent };
    },
    deleteTrigger: async ({ id, api_key_hash }) => {
      await revokeTriggersKey(api_key_hash, { prepare, send, ...parts }).catch((error: unknown) => {
        // It was never attached, or is revoked already.
        if (!(error instanceof ClientError) || error.code !== "unknown_usage_key") throw error;
      });
      return parts.deleteTrigger({ id });
    },
    createPkp: async (strings = {}, { onProgress, ...options } = {}) => {
      sender();
      const minted = await mintPkp(options);
      await onProgress?.({ step: "minted", minted });
      const sent = await secondHalf(minted, onProgress, async () => send(await prepare.registerPkp(minted, strings)));
      return { ...minted, ...sent };
    },
    createUsageKey: async (permissions, { onProgress, ...options } = {}) => {
      sender();
      // Another mint is another request, signed anew.
      const { idempotencyKey: _, ...again } = options;
      for (let mintsLeft = MAX_MINTS; ;) {
        const { usage_api_key, minted } = await mintUsageKey(mintsLeft === MAX_MINTS ? options : again);
        mintsLeft -= 1;
        if (mintsLeft > 0 && (await isTaken(check(await prepare.attachUsageKey(minted, permissions))))) continue;
        await onProgress?.({ step: "minted", minted, usage_api_key });
        const sending = secondHalf(minted, onProgress, async () =>
          send(await prepare.attachUsageKey(minted, permissions)),
        );
        if (mintsLeft > 0 && (await isTaken(sending))) continue;
        return { ...minted, ...(await sending), usage_api_key };
      }
    },
  };
}

/** Only a key that was attached as a trigger's: which one it is, the service states. */
async function revokeTriggersKey(
  keyId: string,
  { accountId, ask, prepare, send }: Pick<FlowParts, "accountId" | "ask" | "prepare" | "send">,
): Promise<void> {
  const key = await ask((contract) => contract.getUsageApiKey(toKeyId(keyId)));
  // Another account's key of this id is none of this account's, and the revocation says so.
  if (key.accountId === BigInt(accountId) && key.description !== TRIGGER_DESCRIPTION)
    refuse(
      `the service names the key ${keyId} as the trigger's, and on the chain its description is not ` +
        `"${TRIGGER_DESCRIPTION}": nothing was revoked. If it is the trigger's, revoke it first yourself ` +
        "(removeUsageApiKey, or keywright key revoke), then delete the trigger.",
    );
  await send(await prepare.removeUsageApiKey({ usage_api_key: keyId }));
}

/** How many keys are minted before giving up on being front-run. */
const MAX_MINTS = 4;

/** Whether another account front-ran the registration of the new key's id; then another key is minted. */
async function isTaken(attempt: Promise<unknown>): Promise<boolean> {
  return attempt.then(
    () => false,
    (error: unknown) => error instanceof ClientError && error.code === "key_id_taken",
  );
}

async function secondHalf<Minted, Result extends object>(
  minted: Minted,
  onProgress: FlowOptions<Minted>["onProgress"],
  send: () => Promise<Sent<Result>>,
): Promise<Sent<Result>> {
  try {
    await onProgress?.({ step: "sending" });
    const sent = await send();
    await onProgress?.({ step: "done", transaction_hash: sent.transaction_hash });
    return sent;
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    // Errors reach terminals and the logs of CI.
    const { hook_secret: _, ...rest } = minted as Minted & { readonly hook_secret?: string };
    throw withFacts(error, { minted: rest });
  }
}
