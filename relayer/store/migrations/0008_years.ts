import { sql, type Kysely } from "kysely";

/**
 * For stores with years of data: indexes of the few active rows, a count of entries beside each account, and where an
 * instance runs.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table instances add column place text`.execute(db);
  await sql`alter table credit_accounts add column entries int8 not null default 0`.execute(db);
  await sql`update credit_accounts set entries = counted.n
    from (select account_id, count(*) as n from ledger_entries group by account_id) counted
      where counted.account_id = credit_accounts.account_id`.execute(db);
  await sql`create index submissions_open_by_payer on submissions (payer, nonce)
    where state in ('reserved', 'signed', 'sent')`.execute(db);
  await sql`create index submissions_with_bytes on submissions (updated_at)
    where calldata is not null and state in ('confirmed', 'failed', 'expired', 'changed')`.execute(db);
  await sql`create index credit_reservations_unbound on credit_reservations (instance_id)
    where state = 'held' and not bound`.execute(db);
  await sql`create index credit_reservations_closed on credit_reservations (closed_at) where state <> 'held'`.execute(
    db,
  );
  await sql`create index credit_reservations_open_by_account on credit_reservations (account_id)
    where state = 'held'`.execute(db);
  await sql`create index ledger_entries_by_key on ledger_entries (key_id) where key_id is not null`.execute(db);
  await sql`alter table ledger_entries drop constraint ledger_entries_contra_check`.execute(db);
  await sql`alter table ledger_entries add constraint ledger_entries_contra_check
    check (contra in ('promotions', 'payments', 'revenue', 'corrections'))`.execute(db);
}
