import type { Generated } from "kysely";
import type { Settings, TriggerKind } from "../../../protocol/trigger";
import type { Int8, Json, Timestamp } from "./types";

/** `unattached`: its key is not on the chain yet. Deleted ones are kept as long as records of their firings. */
export type TriggerState = "unattached" | "active" | "paused" | "deleted";
export type FiringState = "waiting" | "running" | "ended";

export interface TriggersTable {
  id: string;
  account_id: string;
  key_id: string;
  name: string;
  kind: TriggerKind;
  /** Without a hook's secret. */
  settings: Json<Settings>;
  cid: string;
  params_sha256: string;
  /** Code that came with the request; else it is found by its CID. */
  code: string | null;
  /** The whole definition, which only the keyholder can read. */
  sealed: string;
  state: TriggerState;
  /** Why the service paused it. */
  reason: string | null;
  /** One after the other. */
  failures: Generated<number>;
  next_due: Timestamp | null;
  /** Logs of earlier blocks do not fire it. */
  from_block: Int8 | null;
  last_fired_at: Timestamp | null;
  last_outcome: string | null;
  created_at: Timestamp;
}

export interface TriggerFiringsTable {
  id: string;
  trigger_id: string;
  account_id: string;
  /** What fires it: once for each trigger. */
  cause_key: string;
  /** Null for a run by hand, whose credential is not stored. */
  cause: Json<unknown> | null;
  kind: TriggerKind | "manual";
  state: FiringState;
  due_at: Timestamp;
  /** A failed attempt is repeated no earlier. */
  not_before: Timestamp;
  instance_id: string | null;
  attempt: Generated<number>;
  /** Code may have run. */
  began: Generated<boolean>;
  outcome: string | null;
  detail: string | null;
  duration_ms: number | null;
  cost_cents: Int8 | null;
  receipt: string | null;
  started_at: Timestamp | null;
  ended_at: Timestamp | null;
}

/** Up to where blocks were searched for logs that fire triggers with this many confirmations. */
export interface TriggerScansTable {
  /** 0: the account's. */
  chain_id: Int8;
  confirmations: number;
  next_block: Int8;
  /** The newest blocks searched, so that a reorganisation is noticed. */
  recent: Json<{ number: number; hash: string }[]>;
}

export interface TriggerTables {
  triggers: TriggersTable;
  trigger_firings: TriggerFiringsTable;
  trigger_scans: TriggerScansTable;
}
