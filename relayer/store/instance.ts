/**
 * This process among its peers. What an instance holds (reservations, lanes) carries its id; once the lease has not been renewed for 15 seconds,
 * by the database's clock, any other may take it over by compare-and-set. Nothing is special about a start: a restarted process is a new instance.
 */
import { randomUUID } from "node:crypto";
import { sql, type RawBuilder } from "kysely";
import type { Db } from "./database";

export const LEASE_RENEWAL_MS = 5_000;
export const LEASE_SECONDS = 15;

export interface InstanceOptions {
  readonly db: Db;
  readonly renewalMs?: number;
  /** Told when a renewal failed; the next one is tried all the same. */
  readonly onError: (error: unknown) => void;
}

export class Instance {
  readonly id = randomUUID();
  #timer: NodeJS.Timeout | undefined;
  #renewal: Promise<void> = Promise.resolve();

  constructor(private readonly options: InstanceOptions) {}

  async start(): Promise<void> {
    await this.renew();
    this.#timer = setInterval(() => {
      this.#renewal = this.renew().catch(this.options.onError);
    }, this.options.renewalMs ?? LEASE_RENEWAL_MS);
    this.#timer.unref();
  }

  /** Gives the lease up at once, so that peers need not wait for it to run out. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewal;
    await this.options.db.deleteFrom("instances").where("id", "=", this.id).execute();
  }

  async renew(): Promise<void> {
    await this.options.db
      .insertInto("instances")
      .values({ id: this.id })
      .onConflict((conflict) => conflict.column("id").doUpdateSet({ renewed_at: sql`now()` }))
      .execute();
  }
}

/** True for a row whose `column` names an instance that holds a lease no more. */
export function leaseExpired(column: string): RawBuilder<boolean> {
  return sql<boolean>`not exists (select from instances where instances.id = ${sql.ref(column)}
    and instances.renewed_at > now() - ${LEASE_SECONDS} * interval '1 second')`;
}
