import { sql, type Kysely } from "kysely";

/**
 * Every run lowers a balance, and few balances are low: an account's row says below which one its webhooks are looked
 * at. It is the highest level that any webhook of it has had, and is not lowered when webhooks go.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table credit_accounts add column low_cents int8 not null default 0`.execute(db);
  await sql`create function keep_low_cents() returns trigger language plpgsql as $$
    begin
      insert into credit_accounts (account_id, low_cents) values (new.account_id, new.credit_low_cents)
        on conflict (account_id) do update set low_cents = excluded.low_cents
        where credit_accounts.low_cents < excluded.low_cents;
      return null;
    end $$`.execute(db);
  await sql`create trigger keep_low_cents after insert or update of credit_low_cents on webhooks for each row
    execute function keep_low_cents()`.execute(db);
  await sql`insert into credit_accounts (account_id, low_cents)
    select account_id, max(credit_low_cents) from webhooks group by account_id
    on conflict (account_id) do update set low_cents = excluded.low_cents`.execute(db);
  await sql`drop trigger webhook_event_of_low_credit on credit_accounts`.execute(db);
  await sql`create trigger webhook_event_of_low_credit after update of balance_cents on credit_accounts for each row
    when (new.balance_cents < old.balance_cents and new.balance_cents < new.low_cents)
    execute function webhook_event_of_low_credit()`.execute(db);
}
