/**
 * Code by CID for the executors of all machines, in their shared store. Readers recompute the CID, so a tampered row is
 * never run.
 * Space has three bounds: each account has a quota in which newer code evicts older; all code together has a total that
 * the accounts storing most give way to first; and between two trims it may grow to twice that total, beyond which
 * nothing new is stored. Space of deleted code is not counted: PostgreSQL reuses it.
 */
import { sql } from "kysely";
import type { AccountId, Cid } from "../../protocol/ids";
import type { Db } from "./database";

export interface SharedCodeBounds {
  readonly totalBytes: number;
  /** Days after which code that no run has named is deleted. */
  readonly days: number;
}

/** The sum of all code is read again after this time; in between, each relayer counts what it adds. */
const SUM_FRESH_FOR_MS = 10_000;
/** Number of full account quotas that make up the total. */
const ACCOUNTS_THAT_FILL_IT = 64;

export class SharedCodeStore {
  #sum = { bytes: 0, at: -Infinity };
  readonly #db: Db;
  readonly #bounds: SharedCodeBounds;

  constructor(db: Db, bounds: SharedCodeBounds) {
    this.#db = db;
    this.#bounds = bounds;
  }

  async read(cid: Cid): Promise<Buffer | undefined> {
    const row = await this.#db.selectFrom("shared_code").select("code").where("cid", "=", cid).executeTakeFirst();
    return row?.code;
  }

  /** Code larger than an account's quota is not stored. */
  async keep(accountId: AccountId, cid: Cid, code: Buffer): Promise<void> {
    if (code.length > this.#accountBytes) return;
    if (!(await this.#hasRoom())) return this.use(accountId, cid);
    this.#sum.bytes += code.length;
    const { numInsertedOrUpdatedRows: kept } = await this.#db
      .insertInto("shared_code")
      .columns(["cid", "code", "bytes"])
      .expression(sql`select ${cid}, ${code}::bytea, ${code.length}::int8`)
      .onConflict((conflict) => conflict.column("cid").doUpdateSet({ touched_at: sql`now()` }))
      .executeTakeFirstOrThrow();
    await this.use(accountId, cid);
    if (kept === 0n) return;
    await this.#dropBeyondShare(accountId);
  }

  /** Records that a run of the account named the code; no effect if it is not stored. */
  async use(accountId: AccountId, cid: Cid): Promise<void> {
    await sql`insert into shared_code_uses (account_id, cid, bytes) select ${accountId}, cid, bytes from shared_code
      where cid = ${cid}
      on conflict (account_id, cid) do update set used_at = now()`.execute(this.#db);
  }

  async drop(cid: Cid): Promise<void> {
    await this.#db.deleteFrom("shared_code").where("cid", "=", cid).execute();
  }

  /**
   * Deletes unused code, old code, and the excess over the total. Each account's code is stacked newest first, and the
   * deepest code goes first, so an account that stores little loses nothing to one that stores much.
   */
  async trim(): Promise<void> {
    const { totalBytes, days } = this.#bounds;
    await sql`delete from shared_code_uses where used_at < now() - ${days} * interval '1 day'`.execute(this.#db);
    await sql`delete from shared_code where touched_at < now() - interval '10 minutes'
      and not exists (select from shared_code_uses where shared_code_uses.cid = shared_code.cid)`.execute(this.#db);
    if ((await this.#readSum()) <= totalBytes) return;
    await sql`
      with piled as (
        select cid, bytes, sum(bytes) over (partition by account_id order by used_at desc, cid) as depth
          from shared_code_uses
      ), each_code as (
        select cid, bytes, min(depth) as depth from piled group by cid, bytes
      ), summed as (
        select cid, sum(bytes) over (order by depth, cid) as bytes_so_far from each_code
      )
      delete from shared_code using summed where shared_code.cid = summed.cid
        and bytes_so_far > ${totalBytes}::int8`.execute(this.#db);
    await this.#readSum();
  }

  get #accountBytes(): number {
    return Math.floor(this.#bounds.totalBytes / ACCOUNTS_THAT_FILL_IT);
  }

  async #hasRoom(): Promise<boolean> {
    if (Date.now() - this.#sum.at > SUM_FRESH_FOR_MS) await this.#readSum();
    return this.#sum.bytes < 2 * this.#bounds.totalBytes;
  }

  async #readSum(): Promise<number> {
    const { rows } = await sql<{
      bytes: number;
    }>`select coalesce(sum(bytes), 0)::int8 as bytes from shared_code`.execute(this.#db);
    this.#sum = { bytes: rows[0]?.bytes ?? 0, at: Date.now() };
    return this.#sum.bytes;
  }

  async #dropBeyondShare(accountId: AccountId): Promise<void> {
    await sql`
      with piled as (
        select cid, sum(bytes) over (order by used_at desc, cid) as depth from shared_code_uses
          where account_id = ${accountId}
      )
      delete from shared_code_uses using piled
      where account_id = ${accountId} and shared_code_uses.cid = piled.cid
        and depth > ${this.#accountBytes}::int8`.execute(this.#db);
  }
}
