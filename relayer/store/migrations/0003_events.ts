import { sql, type Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table followed_blocks (number int8 primary key, hash text not null)`.execute(db);
  await sql`create table chain_events (
    cursor int8 generated always as identity primary key,
    account_id text,
    name text not null,
    block_number int8 not null,
    block_hash text not null,
    transaction_hash text not null,
    log_index int4 not null,
    -- json, not jsonb: a name may hold any character, U+0000 and half surrogates included, which jsonb refuses
    args json not null,
    owner text,
    removed boolean not null default false,
    retracted boolean not null default false
  )`.execute(db);
  await sql`create index chain_events_by_account on chain_events (account_id, cursor)`.execute(db);
  await sql`create index chain_events_by_block on chain_events (block_number)
    where not removed and not retracted`.execute(db);
  await sql`create index chain_events_by_owner on chain_events (owner, cursor) where owner is not null`.execute(db);
  await sql`create unique index chain_events_once on chain_events (block_hash, log_index)
    where not removed and not retracted`.execute(db);
}
