import type { Generated } from "kysely";
import type { Timestamp } from "./types";

/** A running relayer process. What it holds may be taken over once it has not renewed its lease for 15 seconds. */
export interface InstancesTable {
  id: string;
  renewed_at: Timestamp;
  /** Where other relayers of the same place can see at once whether it lives (presence.ts). */
  place: Generated<string | null>;
}

export interface InstanceTables {
  instances: InstancesTable;
}
