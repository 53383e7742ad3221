import { sql, type Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table known_cids (action_hash text primary key, cid text not null)`.execute(db);
  await sql`create table rate_limits (key varchar(255) primary key, points integer not null default 0,
    expire bigint)`.execute(db);
}
