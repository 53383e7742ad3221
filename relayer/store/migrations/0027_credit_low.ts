import { sql, type Kysely } from "kysely";

/** Each webhook has its own level for `credit.low`. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table webhooks add column credit_low_cents int8 not null default 100`.execute(db);
  await enqueueing(db);
  await sql`create or replace function webhook_event_of_low_credit() returns trigger language plpgsql as $$
    declare
      low record;
    begin
      for low in select credit_low_cents as cents, array_agg(id) as wanting from webhooks
        where account_id = new.account_id and state = 'on' and events ?| array['*', 'credit.*', 'credit.low']
          and credit_low_cents > new.balance_cents and credit_low_cents <= old.balance_cents
        group by credit_low_cents order by credit_low_cents desc
      loop
        perform enqueue_webhook_event_for(low.wanting, new.account_id, 'credit.low',
          json_build_object('balance_cents', new.balance_cents, 'threshold_cents', low.cents));
      end loop;
      return null;
    end $$`.execute(db);
  await sql`drop trigger webhook_event_of_low_credit on credit_accounts`.execute(db);
  await sql`create trigger webhook_event_of_low_credit after update of balance_cents on credit_accounts for each row
    when (new.balance_cents < old.balance_cents) execute function webhook_event_of_low_credit()`.execute(db);
}

/** Who wants an event is one question, adding it for them another. */
async function enqueueing(db: Kysely<unknown>): Promise<void> {
  await sql`create function enqueue_webhook_event_for(wanting text[], account text, event_type text, event_data json)
    returns void language plpgsql as $$
    declare
      event int8;
    begin
      insert into webhook_events (id, account_id, type, data)
        values ('msg_' || replace(gen_random_uuid()::text, '-', ''), account, event_type, event_data)
        returning place into event;
      -- Read again: a webhook that was deleted meanwhile gets nothing.
      insert into webhook_deliveries (webhook_id, place)
        select id, event from webhooks where id = any(wanting) order by id for key share;
    end $$`.execute(db);
  await sql`create or replace function enqueue_webhook_event(account text, event_type text, event_data json)
    returns void language plpgsql as $$
    declare
      names text[] := array['*', split_part(event_type, '.', 1) || '.*', event_type];
      wanting text[];
    begin
      select array_agg(id) into wanting from webhooks
        where account_id = account and state = 'on' and events ?| names;
      if wanting is not null then
        perform enqueue_webhook_event_for(wanting, account, event_type, event_data);
      end if;
    end $$`.execute(db);
}
