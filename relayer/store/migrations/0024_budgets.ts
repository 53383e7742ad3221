import { sql, type Kysely } from "kysely";

/** The budgets that runs have spent of, so that owners can list them. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table budgets (
    account_id text not null, action_hash text not null, cid text not null, name text not null, "window" text not null,
    last_limit text not null, leased_at timestamptz not null default now(),
    primary key (account_id, action_hash, name, "window")
  )`.execute(db);
}
