/**
 * Idempotent requests in the store. A single statement decides who may begin: two relayers never act for the same name
 * at once. Writes that fail (the end of an answered operation, or a claim whose response was lost) are retried as soon
 * as the store accepts them.
 */
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { WIRE_LIMITS } from "../../protocol/limits";
import type { Db } from "./database";
import { leaseExpired } from "./instance";

/** State of a request that the caller must not perform. `open`: it was another request whose outcome is unknown. */
export type KeptAnswer =
  | { readonly state: "running" }
  | { readonly state: "open" }
  | {
      readonly state: "done";
      readonly status: number;
      readonly body: unknown;
      /** The id under which it was performed. */
      readonly attemptId: string;
    };

/** The caller performs the operation under this id, so that it happens once. */
export interface Begun {
  readonly begun: true;
  readonly attemptId: string;
  /** An earlier request of this name ended with an unknown outcome. */
  readonly isRepeated: boolean;
}
export interface Known {
  readonly begun: false;
  readonly bodyHash: string;
  readonly kept: KeptAnswer;
}

/**
 * How an operation ended. `nothing`: without effect, its row is deleted. `unknown`: the next request with this name
 * resumes it.
 */
export type KeptEnd =
  | { readonly end: "nothing" }
  | { readonly end: "unknown" }
  | { readonly end: "done"; readonly status: number; readonly body: unknown };

export interface IdempotencyStore {
  /** Claims a request of this name, or resumes one with an unknown outcome; otherwise returns what is known of it. */
  begin(name: RequestName): Promise<Begun | Known>;
  /** Call once per claim. Never rejects: a failed write is retried later. */
  end(name: RequestName, end: KeptEnd): Promise<void>;
  /** Retries failed writes; rejects while the store still fails. */
  catchUp(): Promise<void>;
}

export interface RequestName {
  /** Hash of route and account, key or address. */
  readonly scope: string;
  readonly key: string;
  readonly bodyHash: string;
}

export function createIdempotencyStore(
  db: Db,
  instanceId: string,
  onError: (error: unknown) => void = () => undefined,
): IdempotencyStore {
  return new KeptRequests(db, instanceId, onError);
}

/** A claim of this process. */
interface Claim {
  readonly id: string;
  readonly bodyHash: string;
}

const EXPIRED_AT_A_TIME = 1_000;
const EXPIRED = sql<boolean>`
  idempotent_requests.created_at < now() - ${sql.lit(WIRE_LIMITS.idempotencyHours)} * interval '1 hour'`;

class KeptRequests implements IdempotencyStore {
  /**
   * Names this process is acting for. Any other `running` row of this instance belongs to a claim whose response was
   * lost.
   */
  readonly #atWork = new Map<string, Claim>();
  readonly #unwritten = new Map<string, () => Promise<void>>();
  readonly #db: Db;
  readonly #instanceId: string;
  readonly #onError: (error: unknown) => void;

  constructor(db: Db, instanceId: string, onError: (error: unknown) => void) {
    this.#db = db;
    this.#instanceId = instanceId;
    this.#onError = onError;
  }

  async begin(name: RequestName): ReturnType<IdempotencyStore["begin"]> {
    const place = placeOf(name);
    const other = this.#atWork.get(place);
    if (other !== undefined) return { begun: false, bodyHash: other.bodyHash, kept: { state: "running" } };
    const claim = { id: randomUUID(), bodyHash: name.bodyHash };
    this.#atWork.set(place, claim);
    let begun = false;
    try {
      await this.#writeNow(place);
      const answer = await this.#claim(name, claim);
      begun = answer.begun;
      return answer;
    } catch (error) {
      if (!this.#unwritten.has(place)) this.#unwritten.set(place, () => this.#releaseClaim(name, claim));
      throw error;
    } finally {
      if (!begun) this.#atWork.delete(place);
    }
  }

  /** Inserts the row, replaces one older than a day, or takes over an abandoned one. */
  async #claim(name: RequestName, { id: claimId }: Claim): ReturnType<IdempotencyStore["begin"]> {
    const values = {
      body_hash: name.bodyHash,
      state: "running" as const,
      instance_id: this.#instanceId,
      attempt_id: claimId,
      claim_id: claimId,
    };
    const made = await this.#db
      .insertInto("idempotent_requests")
      .values({ scope: name.scope, key: name.key, ...values })
      .onConflict((conflict) =>
        conflict
          .columns(["scope", "key"])
          .doUpdateSet({ ...values, status: null, answer: null, created_at: sql<Date>`now()` })
          .where(EXPIRED),
      )
      .returning("key")
      .executeTakeFirst();
    if (made !== undefined) return { begun: true, attemptId: claimId, isRepeated: false };
    const taken = await this.#row(name, this.#db.updateTable("idempotent_requests"))
      .set({ state: "running", instance_id: this.#instanceId, claim_id: claimId })
      .where("body_hash", "=", name.bodyHash)
      .where((where) =>
        where.or([where("state", "=", "open"), where.and([where("state", "=", "running"), this.#isAbandoned()])]),
      )
      .returning("attempt_id")
      .executeTakeFirst();
    if (taken !== undefined) return { begun: true, attemptId: taken.attempt_id, isRepeated: true };
    const row = await this.#row(name, this.#db.selectFrom("idempotent_requests")).selectAll().executeTakeFirst();
    // Deleted between the two statements: it had no effect, so this request may begin.
    return row === undefined
      ? this.#claim(name, { id: claimId, bodyHash: name.bodyHash })
      : { begun: false, bodyHash: row.body_hash, kept: keptOf(row) };
  }

  /** Its instance is dead; or it is this instance, where no other call is acting for this name. */
  #isAbandoned() {
    return sql<boolean>`(idempotent_requests.instance_id = ${this.#instanceId}
      or ${leaseExpired("idempotent_requests.instance_id")})`;
  }

  async end(name: RequestName, end: KeptEnd): Promise<void> {
    const place = placeOf(name);
    const claim = this.#atWork.get(place);
    if (claim === undefined) return;
    this.#unwritten.set(place, () => this.#write(name, claim, end));
    try {
      await this.#writeNow(place);
    } catch (error) {
      this.#onError(error);
    } finally {
      this.#atWork.delete(place);
    }
  }

  async catchUp(): Promise<void> {
    for (const place of [...this.#unwritten.keys()]) if (!this.#atWork.has(place)) await this.#writeNow(place);
  }

  async #writeNow(place: string): Promise<void> {
    const write = this.#unwritten.get(place);
    if (write === undefined) return;
    await write();
    if (this.#unwritten.get(place) === write) this.#unwritten.delete(place);
  }

  async #write(name: RequestName, { id }: Claim, kept: KeptEnd): Promise<void> {
    const claimed = { scope: name.scope, key: name.key, claim_id: id, state: "running" };
    if (kept.end === "nothing") await this.#db.deleteFrom("idempotent_requests").where(matches(claimed)).execute();
    else await this.#db.updateTable("idempotent_requests").set(columnsOf(kept)).where(matches(claimed)).execute();
  }

  /**
   * Releases a claim under which nothing was done: deletes the row if the claim inserted it, reopens it if the claim
   * took it over.
   */
  async #releaseClaim(name: RequestName, { id }: Claim): Promise<void> {
    const claimed = { scope: name.scope, key: name.key, claim_id: id, state: "running" };
    await this.#db
      .deleteFrom("idempotent_requests")
      .where(matches({ ...claimed, attempt_id: id }))
      .execute();
    await this.#db.updateTable("idempotent_requests").set({ state: "open" }).where(matches(claimed)).execute();
  }

  #row<T extends { where(column: "scope" | "key", operator: "=", value: string): T }>(
    { scope, key }: RequestName,
    query: T,
  ): T {
    return query.where("scope", "=", scope).where("key", "=", key);
  }
}

const placeOf = ({ scope, key }: RequestName): string => `${scope}:${key}`;

const matches = (columns: Readonly<Record<string, string>>) =>
  sql<boolean>`${sql.join(
    Object.entries(columns).map(([column, value]) => sql`${sql.ref(column)} = ${value}`),
    sql` and `,
  )}`;

const columnsOf = (kept: Exclude<KeptEnd, { end: "nothing" }>) =>
  kept.end === "done"
    ? ({ state: "done", status: kept.status, answer: JSON.stringify(kept.body) } as const)
    : ({ state: "open" } as const);

function keptOf(row: {
  state: "running" | "open" | "done";
  status: number | null;
  answer: unknown;
  attempt_id: string;
}): KeptAnswer {
  if (row.state !== "done") return { state: row.state };
  return { state: "done", status: row.status ?? 200, body: row.answer, attemptId: row.attempt_id };
}

/** Housekeeping: deletes all requests older than a day. */
export async function dropExpiredRequests(db: Db): Promise<void> {
  let dropped: bigint;
  do {
    const { numAffectedRows } = await sql`
      delete from idempotent_requests where ctid = any(array(
        select ctid from idempotent_requests where ${EXPIRED} limit ${sql.lit(EXPIRED_AT_A_TIME)}))`.execute(db);
    dropped = numAffectedRows ?? 0n;
  } while (dropped === BigInt(EXPIRED_AT_A_TIME));
}
