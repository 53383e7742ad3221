import { sql, type Kysely } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table idempotent_requests (
    scope text not null,
    key text not null,
    body_hash text not null,
    state text not null check (state in ('running', 'open', 'done')),
    instance_id text not null,
    attempt_id text not null,
    status int4,
    answer json,
    created_at timestamptz not null default now(),
    primary key (scope, key),
    check ((state = 'done') = (status is not null))
  )`.execute(db);
  await sql`create index idempotent_requests_by_age on idempotent_requests (created_at)`.execute(db);
}
