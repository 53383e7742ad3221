/** The kept requests in the store. One statement decides who begins: two relayers never act for the same name at once. */
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { WIRE_LIMITS } from "../../protocol/limits";
import type { Db } from "./database";
import { leaseExpired } from "./instance";

/** What is kept of a request. `open`: begun by an instance that is gone, or answered without knowing the outcome. */
export type KeptAnswer =
  { readonly state: "running" } | { readonly state: "open" } | { readonly state: "done"; readonly status: number; readonly body: unknown };

/** The caller is to act; what it does is to carry this id, so that it is done once. */
export interface Begun {
  readonly begun: true;
  readonly attemptId: string;
}
export interface Known {
  readonly begun: false;
  readonly attemptId: string;
  readonly bodyHash: string;
  readonly kept: KeptAnswer;
}

export interface IdempotencyStore {
  /** Begins a request of this name, unless one is known; then what is known of it. An `open` one is taken over by this call. */
  begin(name: RequestName): Promise<Begun | Known>;
  finish(name: RequestName, status: number, body: unknown): Promise<void>;
  /** Its outcome is not known: the next request of this name takes it up. */
  leaveOpen(name: RequestName): Promise<void>;
  /** It had no effect: as if it had never been. */
  forget(name: RequestName): Promise<void>;
}

export interface RequestName {
  /** Hash of route and account, key or address. */
  readonly scope: string;
  readonly key: string;
  readonly bodyHash: string;
}

export function createIdempotencyStore(db: Db, instanceId: string): IdempotencyStore {
  return new KeptRequests(db, instanceId);
}

class KeptRequests implements IdempotencyStore {
  constructor(
    private readonly db: Db,
    private readonly instanceId: string,
  ) {}

  async begin(name: RequestName): ReturnType<IdempotencyStore["begin"]> {
    await this.#dropExpired(name);
    const attemptId = randomUUID();
    const begun = await this.db
      .insertInto("idempotent_requests")
      .values({ scope: name.scope, key: name.key, body_hash: name.bodyHash, state: "running", instance_id: this.instanceId, attempt_id: attemptId })
      .onConflict((conflict) => conflict.columns(["scope", "key"]).doNothing())
      .returning("key")
      .executeTakeFirst();
    return begun === undefined ? this.#known(name) : { begun: true, attemptId };
  }

  /** Takes over what was left open, or begun by an instance whose lease has run out. */
  async #known(name: RequestName): ReturnType<IdempotencyStore["begin"]> {
    const taken = await this.db
      .updateTable("idempotent_requests")
      .set({ state: "running", instance_id: this.instanceId })
      .where("scope", "=", name.scope)
      .where("key", "=", name.key)
      .where("body_hash", "=", name.bodyHash)
      .where((where) => where.or([where("state", "=", "open"), where.and([where("state", "=", "running"), leaseExpired("idempotent_requests.instance_id")])]))
      .returning(["body_hash", "attempt_id"])
      .executeTakeFirst();
    if (taken !== undefined) return { begun: false, attemptId: taken.attempt_id, bodyHash: taken.body_hash, kept: { state: "open" } };
    const row = await this.#row(name).selectAll().executeTakeFirst();
    // Forgotten between the two statements: it had no effect, so this one may begin.
    return row === undefined ? this.begin(name) : { begun: false, attemptId: row.attempt_id, bodyHash: row.body_hash, kept: keptOf(row) };
  }

  async finish(name: RequestName, status: number, body: unknown): Promise<void> {
    await this.#mine(name)
      .set({ state: "done", status, answer: JSON.stringify(body) })
      .execute();
  }

  async leaveOpen(name: RequestName): Promise<void> {
    await this.#mine(name).set({ state: "open" }).execute();
  }

  async forget(name: RequestName): Promise<void> {
    await this.db
      .deleteFrom("idempotent_requests")
      .where("scope", "=", name.scope)
      .where("key", "=", name.key)
      .where("state", "=", "running")
      .where("instance_id", "=", this.instanceId)
      .execute();
  }

  #row(name: RequestName) {
    return this.db.selectFrom("idempotent_requests").where("scope", "=", name.scope).where("key", "=", name.key);
  }

  #mine(name: RequestName) {
    return this.db
      .updateTable("idempotent_requests")
      .where("scope", "=", name.scope)
      .where("key", "=", name.key)
      .where("instance_id", "=", this.instanceId)
      .where("state", "=", "running");
  }

  async #dropExpired(name: RequestName): Promise<void> {
    await this.db
      .deleteFrom("idempotent_requests")
      .where("scope", "=", name.scope)
      .where("key", "=", name.key)
      .where("created_at", "<", sql<Date>`now() - ${WIRE_LIMITS.idempotencyHours} * interval '1 hour'`)
      .execute();
  }
}

function keptOf(row: { state: "running" | "open" | "done"; status: number | null; answer: unknown }): KeptAnswer {
  return row.state === "done" ? { state: "done", status: row.status ?? 200, body: row.answer } : { state: row.state };
}

/** Housekeeping: requests older than a day, whoever sent them. */
export async function dropExpiredRequests(db: Db): Promise<void> {
  await db
    .deleteFrom("idempotent_requests")
    .where("created_at", "<", sql<Date>`now() - ${WIRE_LIMITS.idempotencyHours} * interval '1 hour'`)
    .execute();
}
