import { sql, type Kysely } from "kysely";

/**
 * Limits of usage keys over a day and a minute. What counts is in the key's own row, by hours and ticks: a statement
 * that locks the row sees all of it. `counted_hour` is the hour in which a reservation counts, or null.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table key_limits (
    account_id text not null, key_id text not null,
    cents_per_day int8 check (cents_per_day > 0), runs_per_minute int8 check (runs_per_minute > 0),
    origins jsonb not null default '[]',
    cents_by_hour jsonb not null default '{}', runs_by_tick jsonb not null default '{}',
    primary key (account_id, key_id)
  ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01)`.execute(db);
  await sql`alter table credit_reservations add column counted_hour int8`.execute(db);
  await sql`create function counts_sum(counts jsonb, since int8) returns int8 language sql immutable as $$
    select coalesce(sum(value::int8), 0)::int8 from jsonb_each_text(counts) where key::int8 >= since
  $$`.execute(db);
  await sql`create function counts_add(counts jsonb, changes jsonb, since int8) returns jsonb
    language sql immutable as $$
    select coalesce(jsonb_object_agg(key, count), '{}') from (
      select key, sum(value::int8)::int8 as count
      from (select * from jsonb_each_text(counts) union all select * from jsonb_each_text(changes)) as one
      where key::int8 >= since group by key
    ) as sums
  $$`.execute(db);
}
