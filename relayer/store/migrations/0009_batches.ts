import { sql, type Kysely } from "kysely";

/**
 * A batch is a row of its own that holds nonce and attempts, as a single submission does; its submissions reference it
 * and hold none.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table submissions add column batch_id text references submissions
    on delete cascade, add column place int4`.execute(db);
  await sql`alter table submissions drop constraint submissions_check`.execute(db);
  await sql`alter table submissions add constraint submissions_nonce_held check (nonce is not null or state = 'failed'
    or batch_id is not null)`.execute(db);
  await sql`create index submissions_by_batch on submissions (batch_id, place) where batch_id is not null`.execute(db);
}
