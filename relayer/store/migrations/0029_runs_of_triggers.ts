import { sql, type Kysely } from "kysely";

/** Messages about runs name the trigger of the run, where it has one. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create or replace function webhook_events_of_runs() returns trigger language plpgsql as $$
    begin
      perform enqueue_webhook_event(
        account_id, case when outcome = 'succeeded' then 'run.succeeded' else 'run.failed' end,
        (jsonb_build_object('request_id', request_id, 'api_key_hash', key_id, 'action_ipfs_cid', cid,
          'outcome', outcome, 'duration_ms', duration_ms, 'cost_cents', cost_cents, 'pkps_used', pkps_used,
          'started_at', floor(extract(epoch from started_at))::int8, 'receipt_sha256', receipt_sha256)
          || case when trigger_id is null then '{}'::jsonb else jsonb_build_object('trigger_id', trigger_id) end)::json)
      from added where exists (select from webhooks where webhooks.account_id = added.account_id)
      order by started_at, run_id;
      return null;
    end $$`.execute(db);
}
