/**
 * Effects of a reorg on the store. Events above the last common block are retracted by additional rows; transactions
 * whose block is no longer canonical are pending again and brought to an outcome again, with their writes.
 */
import { sql, type RawBuilder } from "kysely";
import type { Db, Trx } from "../../store/database";
import { lockChainEvents } from "../../store/locks";
import { TRANSACTION_IS_OPEN } from "../submissions/states";
import type { Block } from "./blockLogs";
import { retract } from "./eventList";

/**
 * For an operator, after the chain has dropped final blocks: takes everything back above a block that it still has. The
 * followers of all relayers continue there.
 */
export async function rewind(db: Db, fork: Block): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockChainEvents(trx);
    await undoAbove(trx, fork, sql<boolean>`state = 'displaced' and displaced_in > ${sql.lit(fork.number)}`);
  });
}

/** Undoes everything read above the fork, and `also` transactions; makes the fork the follower's position. */
export async function undoAbove(trx: Trx, fork: Block, also = sql<boolean>`false`): Promise<void> {
  await retract(trx, sql<boolean>`block_number > ${fork.number}`);
  await reopenAbove(trx, fork.number, also);
  await limitLastBlocks(trx, fork.number);
  await trx.deleteFrom("followed_blocks").where("number", ">=", fork.number).execute();
  await trx.insertInto("followed_blocks").values({ number: fork.number, hash: fork.hash }).execute();
}

/** In the order in which transactions lock them. */
async function limitLastBlocks(trx: Trx, highest: number): Promise<void> {
  await sql`
    with locked as (select account_id from account_turns where last_block > ${sql.lit(highest)}
      order by account_id for update)
    update account_turns set last_block = ${highest} from locked
      where account_turns.account_id = locked.account_id`.execute(trx);
}

/**
 * A transaction that is still on the chain finds its receipt again. Final ones are only undone by an operator. Each
 * state has an index by block, which a list of states does not use, nor a block that is a parameter.
 */
async function reopenAbove(trx: Trx, fork: number, also: RawBuilder<boolean>): Promise<void> {
  await reopen(
    trx,
    sql<boolean>`${also} or ((state = 'mined' and block_number > ${sql.lit(fork)})
        or (state = 'confirmed' and block_number > ${sql.lit(fork)}))
      and (exists (select from followed_blocks where number = block_number and hash = block_hash)
        or block_number < (select min(number) from followed_blocks))`,
  );
}

/** Reopens what counts as displaced, or did until a rewind, although the chain has events of its attempts. */
export async function reopenExecuted(trx: Trx, attempts: readonly string[]): Promise<void> {
  if (attempts.length === 0) return;
  await reopen(
    trx,
    sql<boolean>`(state = 'displaced'
        or (abandon and exists (select from writes where transaction_id = transactions.id
          and (writes.state in ('waiting', 'failed', 'abandoned') or (writes.state = 'carried' and purpose = 'noop')))))
      and id in (select transaction_id from attempts where hash = any(${[...attempts]}::text[]))`,
    true,
  );
}

/**
 * Reopens transactions whose block is not canonical although the follower has passed it: a receipt may be ahead of the
 * follower, and may be stored after the follower has moved on. Runs every second; few transactions are not confirmed.
 */
export async function reopenOrphans(db: Db): Promise<void> {
  const isOrphan = sql<boolean>`state = 'mined'
    and exists (select from followed_blocks where number = block_number and hash <> block_hash)`;
  const { rows } = await sql`select from transactions where ${isOrphan} limit 1`.execute(db);
  if (rows.length > 0) await db.transaction().execute((trx) => reopen(trx, isOrphan));
}

/**
 * Keeps the reported outcome, so that a different one is detected; after several reorgs the first one stays. A
 * transaction that a write has left, or where one failed while it waited, comes back as a no-op, and a displaced one
 * without the writes that have outcomes, unless it was executed after all: then it has all that are still its own. One
 * that failed before it was signed, whose nonce a no-op has used, stays failed whatever the chain does. Of several
 * top-ups for a payer, which may have one at a time, all become no-ops. Nothing is reopened whose bytes retention has
 * deleted: it could not be finished.
 */
async function reopen(trx: Trx, which: RawBuilder<boolean>, isExecuted = false): Promise<void> {
  // Locked before their writes are read: these may be released at this moment.
  const { rows: locked } = await sql<Reopened>`select id, to_payer from transactions
    where (${which}) and exists (select from attempts where transaction_id = transactions.id)
    order by id for update`.execute(trx);
  if (locked.length === 0) return;
  const excess = await excessTopUps(trx, locked);
  if (excess.length > 0)
    await sql`update transactions set purpose = 'noop', to_payer = null, amount_wei = null
      where id = any(${excess}::text[])`.execute(trx);
  await sql`
    with found as (
      select id, case when ${sql.lit(isExecuted)} then 'writes' else purpose end as purpose,
        abandon and not ${sql.lit(isExecuted)} as is_to_be_noop,
        state <> 'displaced' or ${sql.lit(isExecuted)} as has_its_writes from transactions
      where id = any(${locked.map(({ id }) => id)}::text[])
    ), reopened as (
      update transactions set state = 'pending', hash = null, block_number = null, block_hash = null,
        displaced_in = null, purpose = found.purpose, abandon = is_to_be_noop, instance_id = null, updated_at = now()
      from found where transactions.id = found.id
    )
    update writes set state = 'carried', result = null, error = null, updated_at = now(),
      before = case when state = 'waiting' then before
        else coalesce(before, jsonb_strip_nulls(jsonb_build_object('result', result, 'error', error))) end
    from found where transaction_id = found.id and purpose = 'writes' and has_its_writes
      and (state in ('done', 'failed', 'abandoned') or (state = 'waiting' and ${sql.lit(isExecuted)}))`.execute(trx);
}

interface Reopened {
  readonly id: string;
  readonly to_payer: number | null;
}

/** Top-ups for a payer that has an open one, or several among these. */
async function excessTopUps(trx: Trx, reopened: readonly Reopened[]): Promise<readonly string[]> {
  const payers = reopened.flatMap(({ to_payer: payer }) => (payer === null ? [] : [payer]));
  if (payers.length === 0) return [];
  const open = await trx
    .selectFrom("transactions")
    .select("to_payer")
    .where("to_payer", "in", payers)
    .where(TRANSACTION_IS_OPEN)
    .execute();
  const all = [...payers, ...open.map(({ to_payer: payer }) => payer)];
  const isExcess = ({ to_payer: payer }: Reopened): boolean =>
    payer !== null && all.indexOf(payer) !== all.lastIndexOf(payer);
  return reopened.filter(isExcess).map(({ id }) => id);
}

/** Transactions in blocks up to `final` are final: those of blocks that the follower has read, or of the given one. */
export async function confirm(db: Db | Trx, final: number, block?: Block): Promise<void> {
  const isOnChain =
    block === undefined
      ? sql`exists (select from followed_blocks where number = block_number and hash = block_hash)`
      : sql`block_hash = ${block.hash}`;
  await sql`update transactions set state = 'confirmed', updated_at = now()
    where state = 'mined' and block_number <= ${final}::int8 and ${isOnChain}`.execute(db);
}

/** The newest block that a transaction is said to be in, or that reads wait for. */
export async function newestClaimed(db: Db): Promise<number> {
  const { rows } = await sql<{ newest: number | null }>`select greatest(
    (select max(block_number) from transactions where state = 'mined'),
    (select max(last_block) from account_turns)) as newest`.execute(db);
  return rows[0]?.newest ?? 0;
}

/** No endpoint has blocks above `highest`: what is said to be in one has its receipt looked up again. */
export async function undoClaims(trx: Trx, highest: number): Promise<void> {
  await reopen(trx, sql<boolean>`state = 'mined' and block_number > ${highest}`);
  await limitLastBlocks(trx, highest);
}

/** Final blocks that the follower did not keep, and that transactions are said to be in. */
export async function passedBlocks(db: Db): Promise<readonly Block[]> {
  const { rows } = await sql<Block>`
    select distinct block_number as number, block_hash as hash from transactions
    where state = 'mined' and block_number < (select min(number) from followed_blocks)
    order by 1 limit ${sql.lit(PASSED_AT_ONCE)}`.execute(db);
  return rows;
}

const PASSED_AT_ONCE = 64;

/** The block is not on the chain. */
export const reopenIn = (db: Db, { hash }: Block): Promise<void> =>
  db.transaction().execute((trx) => reopen(trx, sql<boolean>`state = 'mined' and block_hash = ${hash}`));
