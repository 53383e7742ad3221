/**
 * What a reorg does to the store. Events above the last common block are taken back by entries of their own; submissions whose block is not on the chain are
 * open again and brought to an outcome once more.
 */
import { sql, type RawBuilder } from "kysely";
import type { Db, Trx } from "../../store/database";
import type { Block } from "./blockReader";

/** Everything that was read above the fork is undone, and the fork is where the follower stands. */
export async function undoAbove(trx: Trx, fork: Block): Promise<void> {
  await retractEvents(trx, fork.number);
  await reopenSettledAbove(trx, fork.number);
  await trx.updateTable("account_turns").set({ last_block: fork.number }).where("last_block", ">", fork.number).execute();
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
  // Taken back in the opposite order in which they happened.
  const entries = gone
    .sort((a, b) => b.cursor - a.cursor)
    .map(({ cursor: _, args, ...event }) => ({ ...event, args: JSON.stringify(args), removed: true, retracted: false }));
  for (let start = 0; start < entries.length; start += 500)
    await trx
      .insertInto("chain_events")
      .values(entries.slice(start, start + 500))
      .execute();
}

/**
 * Submissions in blocks that had been read and are gone, also those that were taken as final; and whatever is older than the blocks whose hashes are kept,
 * where nothing else tells. One that is on the chain all the same finds its receipt again.
 */
async function reopenSettledAbove(trx: Trx, fork: number): Promise<void> {
  await reopen(
    trx,
    sql<boolean>`state in ('mined', 'confirmed', 'failed', 'expired', 'changed') and block_number > ${fork}
      and (exists (select from followed_blocks where number = submissions.block_number and hash = submissions.block_hash)
        or block_number < (select min(number) from followed_blocks))`,
  );
}

/**
 * Submissions whose block is not on the chain although the follower has been there: a receipt may be quicker than the follower, and its outcome may be written
 * after the follower went on.
 */
export async function reopenOrphans(db: Db): Promise<void> {
  await reopen(
    db,
    sql<boolean>`state in ('mined', 'failed', 'expired', 'changed')
      and block_number between (select min(number) from followed_blocks) and (select max(number) from followed_blocks)
      and not exists (select from followed_blocks where number = submissions.block_number and hash = submissions.block_hash)`,
  );
}

/** What had been answered is kept, so that another outcome is noticed; the first answer of all stays when the chain changes its mind twice. */
async function reopen(db: Db | Trx, which: RawBuilder<boolean>): Promise<void> {
  await sql`
    update submissions set
      before = coalesce(before, jsonb_strip_nulls(jsonb_build_object('result', result, 'error', error))),
      state = 'sent', transaction_hash = null, block_number = null, block_hash = null, result = null, error = null, instance_id = null, updated_at = now()
    where ${which}`.execute(db);
}
