/**
 * This process among its peers. What an instance holds (reservations, lanes) carries its id; when the lease has not
 * been renewed for 15 seconds, by the database's clock, any other instance may take it over by compare-and-set. A
 * restarted process is simply a new instance. The lease of an instance known to be dead is not waited for: on an
 * embedded store that is every other instance, on PostgreSQL one whose session lock is free (sessionLock.ts).
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { sql, type RawBuilder } from "kysely";
import type { Db } from "./database";
import { isLockFree, type SessionLock } from "./sessionLock";
import { within } from "../../protocol/within";

export const LEASE_RENEWAL_MS = 1_000;
export const LEASE_SECONDS = 15;
/**
 * An instance whose lock is free and whose lease is not renewed for this long is dead: a live one would have
 * reconnected within that time.
 */
const DEAD_AFTER_MS = 2_000;
/** How long a renewal waits for the lock: with neither lock nor renewal, an instance counts as dead after 2 seconds. */
const LOCK_WAIT_MS = 500;

export interface InstanceOptions {
  readonly db: Db;
  readonly renewalMs?: number;
  /** No other process uses this store: every other lease is dead. Default false. */
  readonly storeIsOurs?: boolean;
  /** Creates a session lock, on PostgreSQL. Without it only the lease shows that this instance is alive. */
  readonly lockOf?: ((name: string, onLost: () => void) => SessionLock) | undefined;
  /** Called when a renewal failed; renewal continues regardless. */
  readonly onError: (error: unknown) => void;
}

/** An instance whose lock is free: since when, and its last renewal at that time. */
interface Suspect {
  readonly since: number;
  readonly renewedAt: string;
}

export class Instance {
  readonly id = randomUUID();
  readonly #lock: SessionLock | undefined;
  readonly #suspects = new Map<string, Suspect>();
  #peers = 1;
  #timer: NodeJS.Timeout | undefined;
  #renewal: Promise<void> = Promise.resolve();
  /** A renewal is scheduled and has not begun. */
  #isWaiting = false;
  readonly #options: InstanceOptions;

  constructor(options: InstanceOptions) {
    this.#options = options;
    this.#lock = options.lockOf?.(this.id, () => this.#turn());
  }

  /** Relayers with a live lease on this store, this one included, as of its last renewal. */
  get peers(): number {
    return this.#peers;
  }

  /** Returns once the leases of dead instances are removed. */
  async start(): Promise<void> {
    await this.renew();
    await this.#endDeadInstances();
    if (this.#suspects.size > 0) {
      await sleep(DEAD_AFTER_MS + 10);
      await this.#endDeadInstances();
    }
    await this.#countPeers();
    this.#timer = setInterval(() => this.#turn(), this.#options.renewalMs ?? LEASE_RENEWAL_MS);
    this.#timer.unref();
  }

  /** Deletes the lease, so that peers need not wait for it to expire. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#renewal;
    await this.#options.db.deleteFrom("instances").where("id", "=", this.id).execute();
    await this.#lock?.close();
  }

  async renew(): Promise<void> {
    const hasLock = await within(LOCK_WAIT_MS, this.#holdsLock(), () => false);
    await this.#options.db
      .insertInto("instances")
      .values({ id: this.id, has_lock: hasLock })
      .onConflict((conflict) => conflict.column("id").doUpdateSet({ renewed_at: sql`now()`, has_lock: hasLock }))
      .execute();
  }

  async #holdsLock(): Promise<boolean> {
    return (await this.#lock?.hold().catch((error: unknown) => void this.#options.onError(error))) ?? false;
  }

  /** Renewals run one at a time with at most one queued, so that a slow store does not accumulate them. */
  #turn(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#renewal = this.#renewal
      .then(() => {
        this.#isWaiting = false;
        return this.renew();
      })
      .then(() => this.#endDeadInstances())
      .then(() => this.#countPeers())
      .catch(this.#options.onError);
  }

  async #countPeers(): Promise<void> {
    const { rows } = await sql<{ peers: number }>`
      select count(*)::int4 as peers from instances
        where renewed_at > now() - ${LEASE_SECONDS} * interval '1 second'`.execute(this.#options.db);
    this.#peers = Math.max(1, rows[0]?.peers ?? 1);
  }

  async #endDeadInstances(): Promise<void> {
    const { db, storeIsOurs = false } = this.#options;
    const others = db
      .selectFrom("instances")
      .select(["id", sql<string>`renewed_at::text`.as("renewed_at")])
      .where("id", "<>", this.id);
    const rows = await (storeIsOurs ? others : others.where("has_lock", "=", true)).execute();
    for (const { id, renewed_at: renewedAt } of rows) {
      if (!storeIsOurs && !(await this.#isDead(id, renewedAt))) continue;
      await db
        .deleteFrom("instances")
        .where("id", "=", id)
        .where(sql<boolean>`renewed_at = ${renewedAt}::timestamptz`)
        .execute();
      this.#suspects.delete(id);
    }
  }

  async #isDead(id: string, renewedAt: string): Promise<boolean> {
    if (!(await isLockFree(this.#options.db, id))) {
      this.#suspects.delete(id);
      return false;
    }
    const suspect = this.#suspects.get(id);
    if (suspect?.renewedAt === renewedAt) return performance.now() - suspect.since >= DEAD_AFTER_MS;
    this.#suspects.set(id, { since: performance.now(), renewedAt });
    return false;
  }
}

/** True for a row whose `column` names an instance without a live lease. */
export function leaseExpired(column: string): RawBuilder<boolean> {
  return sql<boolean>`not exists (select from instances where instances.id = ${sql.ref(column)}
    and instances.renewed_at > now() - ${LEASE_SECONDS} * interval '1 second')`;
}
