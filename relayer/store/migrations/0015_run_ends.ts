import { sql, type Kysely } from "kysely";

/**
 * Ends of runs, stored by the statement that closes the run: without an index, so that an insert is cheap. They become
 * records and totals in batches.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table run_ends (
    place int8 not null generated always as identity,
    run_id text not null,
    account_id text not null,
    key_id text not null,
    action_hash text not null,
    cid text not null,
    outcome text not null,
    request_id text not null,
    duration_ms float8 not null,
    cost_cents int8 not null,
    pkps_used jsonb not null,
    started_at timestamptz not null
  )`.execute(db);
}
