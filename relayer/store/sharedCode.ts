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
import { AT_A_TIME, inPieces, type Piece } from "./pieces";

export interface SharedCodeBounds {
  readonly totalBytes: number;
  /** Days after which code that no run has named is deleted. */
  readonly days: number;
}

/** The sum of all code is read again after this time; in between, each relayer counts what it adds. */
const SUM_FRESH_FOR_MS = 10_000;
/** Number of full account quotas that make up the total. */
const ACCOUNTS_THAT_FILL_IT = 64;
const EXCESS_AT_A_TIME = 10 * AT_A_TIME;

export class SharedCodeStore {
  #sum = { bytes: 0, at: -Infinity };
  readonly #db: Db;
  readonly #bounds: SharedCodeBounds;

  constructor(db: Db, bounds: SharedCodeBounds) {
    this.#db = db;
    this.#bounds = bounds;
  }

  /** How many bytes `read` will give; undefined if there is no such code. */
  async sizeOf(cid: Cid): Promise<number | undefined> {
    const row = await this.#db.selectFrom("shared_code").select("bytes").where("cid", "=", cid).executeTakeFirst();
    return row?.bytes;
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
    await inPieces(this.#db, () => oldUses(days));
    await this.#dropUnused();
    if ((await this.#readSum()) <= totalBytes) return;
    await this.#dropExcess();
    await this.#readSum();
  }

  /** Looks at all code, in the order of its CIDs. */
  async #dropUnused(): Promise<void> {
    let after: string | null = "";
    while (after !== null) {
      const { rows }: { rows: { last: string | null }[] } = await sql<{ last: string | null }>`
        with page as materialized (
          select cid from shared_code where cid > ${after} order by cid limit ${sql.lit(AT_A_TIME)}
        ), dropped as (
          delete from shared_code using page where shared_code.cid = page.cid
            and touched_at < now() - interval '10 minutes'
            and not exists (select from shared_code_uses where shared_code_uses.cid = shared_code.cid)
        )
        select max(cid) as last from page`.execute(this.#db);
      after = rows[0]?.last ?? null;
    }
  }

  /** Finding it takes a look at all uses, hence more at a time than is deleted at a time. */
  async #dropExcess(): Promise<void> {
    let cids: string[];
    do {
      const { rows } = await sql<{ cid: string }>`
        with piled as (
          select cid, bytes, sum(bytes) over (partition by account_id order by used_at desc, cid) as depth
            from shared_code_uses
        ), each_code as (
          select cid, bytes, min(depth) as depth from piled group by cid, bytes
        ), summed as (
          select cid, sum(bytes) over (order by depth, cid) as bytes_so_far from each_code
        )
        select cid from summed where bytes_so_far > ${this.#bounds.totalBytes}::int8
        order by bytes_so_far desc limit ${sql.lit(EXCESS_AT_A_TIME)}`.execute(this.#db);
      cids = rows.map(({ cid }) => cid);
      for (let start = 0; start < cids.length; start += AT_A_TIME)
        await sql`delete from shared_code
          where cid = any(${cids.slice(start, start + AT_A_TIME)}::text[])`.execute(this.#db);
    } while (cids.length === EXCESS_AT_A_TIME);
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

/** Of code that no run has named for long. */
const oldUses = (days: number): Piece => sql`
  with old as (
    select account_id, cid from shared_code_uses where used_at < now() - ${days} * interval '1 day'
    order by used_at limit ${sql.lit(AT_A_TIME)} for update skip locked
  ), dropped as (
    delete from shared_code_uses using old
      where shared_code_uses.account_id = old.account_id and shared_code_uses.cid = old.cid returning old.cid
  )
  select count(*) as changed from dropped`;
