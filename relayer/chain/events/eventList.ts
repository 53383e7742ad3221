/**
 * The list of events: rows are only appended. What no longer counts is retracted by rows of its own, and the rows that
 * count are in the chain's order for each account, so that whoever replays its list has the chain's state at the end.
 */
import { sql, type RawBuilder, type Selectable } from "kysely";
import type { Trx } from "../../store/database";
import type { ChainEventsTable } from "../../store/tables/chain";
import type { EventRow } from "./eventRows";

const ROWS_AT_ONCE = 500;

/**
 * Appends what is not in the list yet. Events of blocks up to `position` may be, or are found late: then those that
 * follow them on the chain are retracted, and appended once more behind them.
 */
export async function appendEvents(trx: Trx, rows: readonly EventRow[], position: number): Promise<void> {
  const late = await missing(
    trx,
    rows.filter((row) => row.block_number <= position),
  );
  const moved = late.length === 0 ? [] : await retract(trx, followsOne(late));
  const newer = rows.filter((row) => row.block_number > position);
  await append(trx, [...late, ...moved, ...newer].sort(inOrderOfChain));
}

/** @returns the events that no longer count, as they were appended. */
export async function retract(trx: Trx, which: RawBuilder<boolean>): Promise<readonly EventRow[]> {
  const gone = await trx
    .updateTable("chain_events")
    .set({ retracted: true })
    .where(which)
    .where("removed", "=", false)
    .where("retracted", "=", false)
    .returningAll()
    .execute();
  // Retracted in reverse order.
  gone.sort((a, b) => b.cursor - a.cursor);
  const entries = gone.map(appended);
  await append(
    trx,
    entries.map((entry) => ({ ...entry, removed: true })),
  );
  return entries;
}

function appended({ cursor: _, removed: _removed, retracted: _retracted, args, ...event }: Row): EventRow {
  return { ...event, args: JSON.stringify(args) };
}

type Row = Selectable<ChainEventsTable>;

async function append(trx: Trx, rows: readonly EventRow[]): Promise<void> {
  for (let start = 0; start < rows.length; start += ROWS_AT_ONCE)
    await trx
      .insertInto("chain_events")
      .values(rows.slice(start, start + ROWS_AT_ONCE))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
}

async function missing(trx: Trx, rows: readonly EventRow[]): Promise<readonly EventRow[]> {
  if (rows.length === 0) return rows;
  const blocks = [...new Set(rows.map((row) => row.block_hash))];
  const { rows: stored } = await sql<Pick<Row, "block_hash" | "log_index">>`select block_hash, log_index
    from chain_events where block_hash = any(${blocks}::text[]) and not removed and not retracted`.execute(trx);
  const known = new Set(stored.map(placeOf));
  return rows.filter((row) => !known.has(placeOf(row)));
}

/** Whether an event is of an account that has one of these, and follows the first of them there. */
function followsOne(late: readonly EventRow[]): RawBuilder<boolean> {
  const inOrder = [...late].sort(inOrderOfChain);
  const firsts = new Map<string, Pick<Row, "account_id" | "block_number" | "log_index">>();
  for (const { account_id = null, block_number, log_index } of inOrder)
    // The contract's own events are nobody's list.
    if (account_id !== null && !firsts.has(account_id)) firsts.set(account_id, { account_id, block_number, log_index });
  const places = [...firsts.values()];
  const oldest = inOrder[0]?.block_number ?? 0;
  // As a literal, so that the index by block is used.
  return sql<boolean>`block_number >= ${sql.lit(oldest)} and exists (
    select from jsonb_to_recordset(${JSON.stringify(places)}::jsonb)
      as late (account_id text, block_number int8, log_index int4)
    where late.account_id = chain_events.account_id and (chain_events.block_number > late.block_number
      or (chain_events.block_number = late.block_number and chain_events.log_index > late.log_index)))`;
}

const placeOf = ({ block_hash, log_index }: Pick<Row, "block_hash" | "log_index">): string =>
  `${block_hash} ${log_index}`;

const inOrderOfChain = (a: EventRow, b: EventRow): number =>
  a.block_number - b.block_number || a.log_index - b.log_index;
