import { sql, type Kysely } from "kysely";

/**
 * A batch's members change their state once, with their outcome, and are in no index that only units need. Outcomes are
 * found by block and hash, so that looking for those in foreign blocks visits no other.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop index submissions_nonce, submissions_one_top_up, submissions_open_by_payer, submissions_mined`.execute(
    db,
  );
  await sql`create unique index submissions_nonce on submissions (payer, nonce) where nonce is not null`.execute(db);
  await sql`create unique index submissions_one_top_up on submissions (to_payer)
    where to_payer is not null and state in ('reserved', 'signed', 'sent')`.execute(db);
  await sql`create index submissions_open_by_payer on submissions (payer, nonce)
    where batch_id is null and state in ('reserved', 'signed', 'sent')`.execute(db);
  await sql`create index submissions_mined on submissions (block_number, block_hash)
    where state not in ('reserved', 'signed', 'sent', 'confirmed')`.execute(db);
  // Their rows change several times each: without this, searches pass the remains of a fifth of the table.
  for (const table of ["submissions", "credit_reservations", "idempotent_requests"])
    await sql`alter table ${sql.table(table)} set (autovacuum_vacuum_scale_factor = 0.01)`.execute(db);
}
