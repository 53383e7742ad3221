import type { Generated } from "kysely";
import type { Timestamp } from "./types";

/** A running relayer process. What it holds may be taken over when it has not renewed its lease for 15 seconds. */
export interface InstancesTable {
  id: string;
  renewed_at: Timestamp;
  /** Whether it holds the session lock of its id (sessionLock.ts). */
  has_lock: Generated<boolean>;
}

export interface InstanceTables {
  instances: InstancesTable;
}
