import { sql, type Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table instances (
    id text primary key,
    renewed_at timestamptz not null default now()
  )`.execute(db);
}
