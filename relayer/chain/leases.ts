/**
 * Work that one instance does for all: maintaining lanes, following events, finding the logs
 * that fire triggers. Assigned by lease; an expired lease is
 * taken over by compare-and-set.
 */
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
    const { numUpdatedRows } = await this.#db
      .updateTable("chain_duties")
      .set({ instance_id: this.#instanceId })
      .where("name", "=", lease)
      .where((eb) =>
        eb.or([
          eb("instance_id", "is", null),
          eb("instance_id", "=", this.#instanceId),
          leaseExpired("chain_duties.instance_id"),
        ]),
      )
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  async release(): Promise<void> {
    await this.#db
      .updateTable("chain_duties")
      .set({ instance_id: null })
      .where("instance_id", "=", this.#instanceId)
      .execute();
  }
}
