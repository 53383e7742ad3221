/**
 * Effects of a reorg on the store. Events above the last common block are retracted by additional rows; submissions
 * whose block is no longer canonical are reopened and brought to an outcome again.
 */
import { sql, type RawBuilder } from "kysely";
import type { Db, Trx } from "../../store/database";
import type { Block } from "./blockReader";

/**
 * For an operator, after the chain has dropped final blocks: takes everything back above a block that it still has. The
 * followers of all relayers continue there.
 */
export async function rewind(db: Db, fork: Block): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockEvents(trx);
    await undoAbove(trx, fork);
  });
}

/** Until the transaction ends, no other one moves the follower. */
export const lockEvents = (trx: Trx): Promise<unknown> =>
  sql`select pg_advisory_xact_lock(hashtext('chain_events'))`.execute(trx);

/** Undoes everything read above the fork and makes the fork the follower's position. */
export async function undoAbove(trx: Trx, fork: Block): Promise<void> {
  await retractEvents(trx, fork.number);
  await reopenSettledAbove(trx, fork.number);
  // In the order in which submissions lock them.
  await sql`
    with locked as (select account_id from account_turns where last_block > ${sql.lit(fork.number)}
      order by account_id for update)
    update account_turns set last_block = ${fork.number} from locked
      where account_turns.account_id = locked.account_id`.execute(trx);
  await trx.deleteFrom("followed_blocks").where("number", ">=", fork.number).execute();
  await trx.insertInto("followed_blocks").values({ number: fork.number, hash: fork.hash }).execute();
}

async function retractEvents(trx: Trx, fork: number): Promise<void> {
  const gone = await trx
    .updateTable("chain_events")
    .set({ retracted: true })
    .where("block_number", ">", fork)
    .where("removed", "=", false)
    .where("retracted", "=", false)
    .returningAll()
    .execute();
  // Retracted in reverse order.
  const entries = gone
    .sort((a, b) => b.cursor - a.cursor)
    .map(({ cursor: _, args, ...event }) => ({
      ...event,
      args: JSON.stringify(args),
      removed: true,
      retracted: false,
    }));
  for (let start = 0; start < entries.length; start += 500)
    await trx
      .insertInto("chain_events")
      .values(entries.slice(start, start + 500))
      .execute();
}

/** A submission that is still on the chain finds its receipt again. Final ones are only undone by an operator. */
async function reopenSettledAbove(trx: Trx, fork: number): Promise<void> {
  await reopen(
    trx,
    sql<boolean>`state in ('mined', 'confirmed', 'failed', 'expired', 'changed') and block_number > ${fork}
      and (exists (select from followed_blocks where number = submissions.block_number
        and hash = submissions.block_hash)
        or block_number < (select min(number) from followed_blocks))`,
  );
}

/** Reopens what counts as not executed although the chain has events of its transactions. */
export async function reopenExecuted(trx: Trx, transactions: readonly string[]): Promise<void> {
  if (transactions.length === 0) return;
  const carriers = sql`select submission_id from submission_attempts where hash = any(${[...transactions]}::text[])`;
  await reopen(
    trx,
    sql<boolean>`state in ('expired', 'failed') and block_number is null
      and (id in (${carriers}) or batch_id in (${carriers}))`,
  );
}

/**
 * Reopens submissions whose block is not canonical although the follower has passed it: a receipt may be ahead of the
 * follower, and its outcome may be stored after the follower has moved on. Runs every second, so it visits nothing but
 * orphans: per block, the two ranges of the index beside its hash. `offset 0` keeps the planner from joining them.
 */
export async function reopenOrphans(db: Db): Promise<void> {
  const beside = (comparison: "<" | ">"): RawBuilder<string> => sql`
    select orphan.id from followed_blocks cross join lateral (
      select id from submissions where state in ('mined', 'failed', 'expired', 'changed')
        and block_number = followed_blocks.number and block_hash ${sql.raw(comparison)} followed_blocks.hash
      offset 0
    ) as orphan`;
  await reopen(db, sql<boolean>`id = any(array(${beside("<")} union all ${beside(">")}))`);
}

/**
 * Keeps the reported outcome, so that a different one is detected; after several reorgs the first one stays. Nothing is
 * reopened whose bytes retention has deleted: it could not be finished.
 */
async function reopen(db: Db | Trx, which: RawBuilder<boolean>): Promise<void> {
  await sql`
    update submissions set
      before = coalesce(before, jsonb_strip_nulls(jsonb_build_object('result', result, 'error', error))),
      state = 'sent', transaction_hash = null, block_number = null, block_hash = null, result = null, error = null,
        instance_id = null, updated_at = now()
    where ${which} and exists (select from submission_attempts
      where submission_id = coalesce(submissions.batch_id, submissions.id))`.execute(db);
}
