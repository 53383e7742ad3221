import { sql, type Kysely } from "kysely";

/** What is looked for among millions: a webhook's messages by state, messages of runs, triggers without use. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index webhook_deliveries_by_state on webhook_deliveries (webhook_id, state, place)`.execute(db);
  await sql`create index trigger_firings_with_detail on trigger_firings (ended_at) where detail is not null`.execute(
    db,
  );
  await sql`create index triggers_without_use on triggers (state) where state in ('deleted', 'unattached')`.execute(db);
}
