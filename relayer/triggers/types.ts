/** Triggers as the rest of the relayer sees them. */
import type { AccountId, Cid, KeyId } from "../../protocol/ids";
import type { Settings, TriggerKind } from "../../protocol/trigger";
import type { FiringState, TriggerState } from "../store/tables/triggers";

export interface TriggerView {
  readonly id: string;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  readonly name: string;
  readonly kind: TriggerKind;
  readonly settings: Settings;
  readonly cid: Cid;
  readonly paramsSha256: string;
  readonly state: TriggerState;
  readonly reason: string | undefined;
  readonly failures: number;
  readonly nextDue: Date | undefined;
  readonly lastFiredAt: Date | undefined;
  readonly lastOutcome: string | undefined;
  readonly createdAt: Date;
}

export interface NewTrigger extends Pick<
  TriggerView,
  "id" | "accountId" | "keyId" | "name" | "kind" | "settings" | "cid" | "paramsSha256"
> {
  readonly code: string | undefined;
  readonly sealed: string;
  /** Not by this request: it may remain unattached. */
  readonly isAttachedByOwner?: boolean;
  /** By a usage key, which leaves room for its owner's. */
  readonly isAskedByKey?: boolean;
}

export interface FiringView {
  readonly id: string;
  readonly triggerId: string;
  readonly kind: TriggerKind | "manual";
  readonly cause: string;
  readonly state: FiringState;
  readonly dueAt: Date;
  readonly outcome: string | undefined;
  readonly detail: string | undefined;
  readonly durationMs: number | undefined;
  readonly costCents: number | undefined;
  readonly receipt: string | undefined;
  readonly startedAt: Date | undefined;
  readonly endedAt: Date | undefined;
}

/** How a firing ended; `response` is JSON text, only known to the relayer that made the run. */
export interface Fired {
  readonly outcome: string;
  readonly detail?: string | undefined;
  readonly durationMs?: number;
  readonly costCents?: number;
  readonly receipt?: string;
  readonly response?: string;
  /** It was refused before any code could run. */
  readonly isRefused?: true;
}

/** A firing that this instance is to make. */
export interface Claimed {
  readonly id: string;
  readonly triggerId: string;
  readonly accountId: AccountId;
  readonly keyId: KeyId;
  readonly kind: TriggerKind | "manual";
  readonly cause: unknown;
  readonly dueAt: Date;
  readonly attempt: number;
  /** How large its trigger's definition is. */
  readonly bytes: number;
}

/** What a firing's run needs of its trigger: read when its turn has come, since code may be large. */
export interface Definition {
  readonly sealed: string;
  readonly cid: Cid;
  readonly code: string | undefined;
}
