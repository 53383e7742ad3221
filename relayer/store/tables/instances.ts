import type { Timestamp } from "./types";

/** A running relayer process. What it holds may be taken over once it has not renewed its lease for 15 seconds. */
export interface InstancesTable {
  id: string;
  renewed_at: Timestamp;
}

export interface InstanceTables {
  instances: InstancesTable;
}
