/** Ages a store: inserts the rows of years of use, for benches and tests of query plans. */
import { sql } from "kysely";
import type { Db } from "../../relayer/store/database";
import { makeOthersOld } from "./oldTables";

export interface Age {
  readonly submissions: number;
  readonly postings: number;
  /** Rows of each other table that grows with use. */
  readonly others: number;
}

const ROWS_PER_STATEMENT = 100_000;
/** A payer lane that no relayer uses. */
const OLD_PAYER = 1_000;
const POSTINGS_PER_ACCOUNT = 1_000;
/** It has a tenth of all postings. */
export const LARGEST_ACCOUNT = "old 0";

/** `onProgress` receives the number of rows so far. */
export async function makeOld(
  db: Db,
  { submissions, postings, others }: Age,
  onProgress: (rows: number) => void = () => undefined,
): Promise<void> {
  await sql`insert into lanes (payer, address, next_nonce, draining) values (${OLD_PAYER}, 'old', 0, true)
    on conflict do nothing`.execute(db);
  await sql`insert into credit_accounts (account_id) select 'old ' || n
    from generate_series(0, ${Math.ceil(postings / POSTINGS_PER_ACCOUNT)}::int) n
    on conflict do nothing`.execute(db);
  await inPieces(submissions, (from, to) => oldSubmissions(db, from, to), onProgress);
  await inPieces(postings, (from, to) => oldPostings(db, from, to, postings / 10), onProgress);
  await sql`update credit_accounts set balance_cents = sums.cents, entries = sums.n
    from (select account_id, sum(amount_cents) as cents, count(*) as n from ledger_entries
      where account_id like 'old %' group by account_id) sums
    where sums.account_id = credit_accounts.account_id`.execute(db);
  await makeOthersOld(db, others);
  await sql`insert into run_counts select account_id, '', '', '', count(*) from run_records
    where account_id = ${LARGEST_ACCOUNT} group by account_id`.execute(db);
  await vacuum(db);
  await sql`checkpoint`.execute(db);
}

/** As autovacuum would have done over the years; otherwise it would run during the measurement. */
const vacuum = (db: Db): Promise<void> =>
  db.connection().execute(async (connection) => {
    await sql`set statement_timeout = 0`.execute(connection);
    await sql`vacuum analyze`.execute(connection);
    await sql`reset statement_timeout`.execute(connection);
  });

async function inPieces(
  rows: number,
  insert: (from: number, to: number) => Promise<void>,
  onProgress: (rows: number) => void,
): Promise<void> {
  for (let from = 0; from < rows; from += ROWS_PER_STATEMENT) {
    const to = Math.min(rows, from + ROWS_PER_STATEMENT) - 1;
    await insert(from, to);
    onProgress(to + 1);
  }
}

/** Final submissions as retention leaves them; every tenth still has its calldata. */
async function oldSubmissions(db: Db, from: number, to: number): Promise<void> {
  await sql`insert into transactions (id, payer, nonce, purpose, state, gas_limit, hash, block_number, block_hash,
    created_at, updated_at)
    select 'old ' || n, ${OLD_PAYER}, n, 'writes', 'confirmed', 100000, '0x' || n, 0, '0x',
      now() - interval '1 day', now() - interval '1 day'
    from generate_series(${from}::int, ${to}::int) n`.execute(db);
  await sql`insert into writes (id, account_id, kind, state, transaction_id, place, calldata, billed, charged,
    created_at, updated_at)
    select 'old ' || n, 'old ' || n % 1000, 'add_group', 'done', 'old ' || n, 0, case when n % 10 = 0
      then '0x' || repeat('ab', 200) end, false, true, now() - interval '1 day', now() - interval '1 day'
    from generate_series(${from}::int, ${to}::int) n`.execute(db);
}

/**
 * Runs of one cent, paid by each account's first posting, a top-up. A twentieth is within the retention of records and
 * reservations.
 */
async function oldPostings(db: Db, from: number, to: number, ofLargest: number): Promise<void> {
  const account = sql`case when n < ${ofLargest}::int then ${LARGEST_ACCOUNT}::text
    else 'old ' || n / ${POSTINGS_PER_ACCOUNT}::int end`;
  await sql`insert into ledger_entries (account_id, contra, amount_cents, kind, reference, posting_key, created_at)
    select ${account}, case when n % ${POSTINGS_PER_ACCOUNT}::int = 0 then 'payments'
      else 'revenue' end,
      case when n % ${POSTINGS_PER_ACCOUNT}::int = 0 then 5000 else -1 end, case
        when n % ${POSTINGS_PER_ACCOUNT}::int = 0 then 'top_up' else 'run' end,
      'old ' || n, 'old:' || n, now() - interval '100 days'
    from generate_series(${from}::int, ${to}::int) n`.execute(db);
  await sql`insert into credit_reservations (id, kind, account_id, reserved_cents, cost_cents, state, instance_id,
    closed_at)
    select 'old ' || n, 'run', ${account}, 1, 1, 'settled', 'old', now()
      from generate_series(${from}::int, ${to}::int, 20) n`.execute(db);
  await sql`insert into run_records (run_id, account_id, key_id, action_hash, cid, outcome, request_id, duration_ms,
    cost_cents, pkps_used, started_at)
    select 'old ' || n, ${account}, 'key', 'action', 'cid', 'succeeded', 'request', 5,
      1, '[]', now() - n % 80 * interval '1 day'
    from generate_series(${from}::int, ${to}::int, 20) n`.execute(db);
}
