/**
 * This process among its peers. What an instance holds (reservations, lanes) carries its id; once the lease has not been renewed for 15 seconds,
 * by the database's clock, any other may take it over by compare-and-set. Nothing is special about a start: a restarted process is a new instance.
 * Nobody waits for the lease of an instance that is known to be dead: on an embedded store every other one, on one machine by its socket (presence.ts).
 */
import { randomUUID } from "node:crypto";
import { sql, type RawBuilder } from "kysely";
import type { Db } from "./database";
import { beHere, isDead, placeHere } from "./presence";

export const LEASE_RENEWAL_MS = 5_000;
export const LEASE_SECONDS = 15;

export interface InstanceOptions {
  readonly db: Db;
  readonly renewalMs?: number;
  /** No other process can be on this store: whoever else has a lease is dead. Default false. */
  readonly storeIsOurs?: boolean;
  /** Told when a renewal failed; the next one is tried all the same. */
  readonly onError: (error: unknown) => void;
}

export class Instance {
  readonly id = randomUUID();
  readonly #place = placeHere();
  #leave: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;
  #renewal: Promise<void> = Promise.resolve();

  constructor(private readonly options: InstanceOptions) {}

  async start(): Promise<void> {
    if (this.#place !== undefined) this.#leave = await beHere(this.id);
    await this.renew();
    await this.#endTheDead();
    this.#timer = setInterval(() => {
      this.#renewal = this.#turn().catch(this.options.onError);
    }, this.options.renewalMs ?? LEASE_RENEWAL_MS);
    this.#timer.unref();
  }

  /** Gives the lease up at once, so that peers need not wait for it to run out. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewal;
    await this.options.db.deleteFrom("instances").where("id", "=", this.id).execute();
    this.#leave();
  }

  async renew(): Promise<void> {
    await this.options.db
      .insertInto("instances")
      .values({ id: this.id, place: this.#place ?? null })
      .onConflict((conflict) => conflict.column("id").doUpdateSet({ renewed_at: sql`now()` }))
      .execute();
  }

  async #turn(): Promise<void> {
    await this.renew();
    await this.#endTheDead();
  }

  async #endTheDead(): Promise<void> {
    const { db, storeIsOurs = false } = this.options;
    const others = db.selectFrom("instances").select("id").where("id", "<>", this.id);
    const known = storeIsOurs ? others : others.where("place", "=", this.#place ?? "");
    for (const { id } of await known.execute()) {
      if (storeIsOurs || (await isDead(id))) await db.deleteFrom("instances").where("id", "=", id).execute();
    }
  }
}

/** True for a row whose `column` names an instance that holds a lease no more. */
export function leaseExpired(column: string): RawBuilder<boolean> {
  return sql<boolean>`not exists (select from instances where instances.id = ${sql.ref(column)}
    and instances.renewed_at > now() - ${LEASE_SECONDS} * interval '1 second')`;
}
