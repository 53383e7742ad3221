import { sql, type Kysely } from "kysely";

/** Logs are searched on several chains: each has positions of its own. 0 is the account's chain. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table trigger_scans add column chain_id int8 not null default 0`.execute(db);
  await sql`alter table trigger_scans drop constraint trigger_scans_pkey`.execute(db);
  await sql`alter table trigger_scans add primary key (chain_id, confirmations)`.execute(db);
}
