/**
 * Work that one instance does for all: maintaining lanes, following events, finding the logs
 * that fire triggers. Assigned by lease; an expired lease is
 * taken over by compare-and-set.
 */
import { sql } from "kysely";
import type { Db } from "../store/database";
import { leaseExpired } from "../store/instance";

export type LeaseName = "keep_lanes" | "follow_events" | "find_logs";

export class Leases {
  readonly #db: Db;
  readonly #instanceId: string;

  constructor(db: Db, instanceId: string) {
    this.#db = db;
    this.#instanceId = instanceId;
  }

  /** Claims the lease; true while it is this instance's. */
  async claim(lease: LeaseName): Promise<boolean> {
    const { numAffectedRows = 0n } = await sql`
      update chain_duties set instance_id = ${this.#instanceId} where name = ${lease}
        and (instance_id is null or instance_id = ${this.#instanceId} or ${leaseExpired("chain_duties.instance_id")})
      `.execute(this.#db);
    return numAffectedRows > 0n;
  }

  async release(): Promise<void> {
    await this.#db
      .updateTable("chain_duties")
      .set({ instance_id: null })
      .where("instance_id", "=", this.#instanceId)
      .execute();
  }
}
