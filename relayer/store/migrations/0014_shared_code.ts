import { sql, type Kysely } from "kysely";

/**
 * Code by CID for all machines, the accounts that use it (and whose quota it counts towards), and per-second rates that
 * machines count together.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table shared_code (
    cid text primary key, code bytea not null, bytes int8 not null, touched_at timestamptz not null default now()
  )`.execute(db);
  await sql`create table shared_code_uses (
    account_id text not null, cid text not null references shared_code (cid) on delete cascade, bytes int8 not null,
    used_at timestamptz not null default now(), primary key (account_id, cid)
  )`.execute(db);
  await sql`create index shared_code_uses_by_cid on shared_code_uses (cid)`.execute(db);
  await sql`create unlogged table fleeting_rates (key varchar(255) primary key, points integer not null default 0,
    expire bigint)`.execute(db);
}
