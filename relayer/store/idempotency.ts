/**
 * The kept requests in the store. One statement decides who begins: two relayers never act for the same name at once. What cannot be written down at the moment
 * (the end of an act whose answer was given, or a beginning whose own answer was lost) is written as soon as the store takes it again.
 */
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { WIRE_LIMITS } from "../../protocol/limits";
import type { Db } from "./database";
import { leaseExpired } from "./instance";

/** What is kept of a request that is not the caller's to act on. `open`: it ended without a known end, and was another request. */
export type KeptAnswer =
  { readonly state: "running" } | { readonly state: "open" } | { readonly state: "done"; readonly status: number; readonly body: unknown };

/** The caller is to act; what it does is to carry this id, so that it is done once. */
export interface Begun {
  readonly begun: true;
  readonly attemptId: string;
  /** An earlier request of this name ended without a known end. */
  readonly isRepeated: boolean;
}
export interface Known {
  readonly begun: false;
  readonly bodyHash: string;
  readonly kept: KeptAnswer;
}

/** The end of an act as it is kept: `nothing` as if it had never been asked for; `unknown` to be taken up by the next request of this name. */
export type KeptEnd = { readonly end: "nothing" } | { readonly end: "unknown" } | { readonly end: "done"; readonly status: number; readonly body: unknown };

export interface IdempotencyStore {
  /** Begins a request of this name, or takes up one that was left without a known end; else what is known of it. */
  begin(name: RequestName): Promise<Begun | Known>;
  /** To be called once for each beginning. Never rejects: what cannot be written now is written later. */
  end(name: RequestName, end: KeptEnd): Promise<void>;
  /** Writes down what could not be written before; rejects when the store still fails. */
  catchUp(): Promise<void>;
}

export interface RequestName {
  /** Hash of route and account, key or address. */
  readonly scope: string;
  readonly key: string;
  readonly bodyHash: string;
}

export function createIdempotencyStore(db: Db, instanceId: string, onError: (error: unknown) => void = () => undefined): IdempotencyStore {
  return new KeptRequests(db, instanceId, onError);
}

/** A beginning of this process. */
interface Claim {
  readonly id: string;
  readonly bodyHash: string;
}

const EXPIRED = sql<boolean>`idempotent_requests.created_at < now() - ${sql.lit(WIRE_LIMITS.idempotencyHours)} * interval '1 hour'`;

class KeptRequests implements IdempotencyStore {
  /** Names this process acts for. Any other row of this instance that is still `running` is one whose beginning was not heard of. */
  readonly #atWork = new Map<string, Claim>();
  readonly #unwritten = new Map<string, () => Promise<void>>();

  constructor(
    private readonly db: Db,
    private readonly instanceId: string,
    private readonly onError: (error: unknown) => void,
  ) {}

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
      if (!this.#unwritten.has(place)) this.#unwritten.set(place, () => this.#letGo(name, claim));
      throw error;
    } finally {
      if (!begun) this.#atWork.delete(place);
    }
  }

  /** Makes the row, replaces one that is more than a day old, or takes over one nobody acts for. */
  async #claim(name: RequestName, { id: claimId }: Claim): ReturnType<IdempotencyStore["begin"]> {
    const values = { body_hash: name.bodyHash, state: "running" as const, instance_id: this.instanceId, attempt_id: claimId, claim_id: claimId };
    const made = await this.db
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
    const taken = await this.#row(name, this.db.updateTable("idempotent_requests"))
      .set({ state: "running", instance_id: this.instanceId, claim_id: claimId })
      .where("body_hash", "=", name.bodyHash)
      .where((where) => where.or([where("state", "=", "open"), where.and([where("state", "=", "running"), this.#nobodyActs()])]))
      .returning("attempt_id")
      .executeTakeFirst();
    if (taken !== undefined) return { begun: true, attemptId: taken.attempt_id, isRepeated: true };
    const row = await this.#row(name, this.db.selectFrom("idempotent_requests")).selectAll().executeTakeFirst();
    // Forgotten between the two statements: it had no effect, so this one may begin.
    return row === undefined ? this.#claim(name, { id: claimId, bodyHash: name.bodyHash }) : { begun: false, bodyHash: row.body_hash, kept: keptOf(row) };
  }

  /** Its instance is gone; or it is this one, which acts for this name in no other call. */
  #nobodyActs() {
    return sql<boolean>`(idempotent_requests.instance_id = ${this.instanceId} or ${leaseExpired("idempotent_requests.instance_id")})`;
  }

  async end(name: RequestName, end: KeptEnd): Promise<void> {
    const place = placeOf(name);
    const claim = this.#atWork.get(place);
    if (claim === undefined) return;
    this.#unwritten.set(place, () => this.#write(name, claim, end));
    try {
      await this.#writeNow(place);
    } catch (error) {
      this.onError(error);
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
    if (kept.end === "nothing") await this.db.deleteFrom("idempotent_requests").where(matches(claimed)).execute();
    else await this.db.updateTable("idempotent_requests").set(columnsOf(kept)).where(matches(claimed)).execute();
  }

  /** Nobody has acted under this claim: a row it made goes, one it took over is left as it was found. */
  async #letGo(name: RequestName, { id }: Claim): Promise<void> {
    const claimed = { scope: name.scope, key: name.key, claim_id: id, state: "running" };
    await this.db
      .deleteFrom("idempotent_requests")
      .where(matches({ ...claimed, attempt_id: id }))
      .execute();
    await this.db.updateTable("idempotent_requests").set({ state: "open" }).where(matches(claimed)).execute();
  }

  #row<T extends { where(column: "scope" | "key", operator: "=", value: string): T }>({ scope, key }: RequestName, query: T): T {
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
  kept.end === "done" ? ({ state: "done", status: kept.status, answer: JSON.stringify(kept.body) } as const) : ({ state: "open" } as const);

function keptOf(row: { state: "running" | "open" | "done"; status: number | null; answer: unknown }): KeptAnswer {
  return row.state === "done" ? { state: "done", status: row.status ?? 200, body: row.answer } : { state: row.state };
}

/** Housekeeping: requests older than a day, whoever sent them. */
export async function dropExpiredRequests(db: Db): Promise<void> {
  await db.deleteFrom("idempotent_requests").where(EXPIRED).execute();
}
