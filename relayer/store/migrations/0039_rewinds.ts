import { sql, type Kysely } from "kysely";

/** What a rewind needs: which transactions lost their nonces above its block, and what retention must keep for it. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table transactions add column displaced_in int8`.execute(db);
  await sql`create index transactions_displaced on transactions (displaced_in) where state = 'displaced'`.execute(db);
  await sql`alter table followed_blocks add column read_at timestamptz not null default now()`.execute(db);
}
