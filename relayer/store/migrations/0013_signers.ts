import { sql, type Kysely } from "kysely";

/**
 * The signer of a forward request: requests of one signer carry consecutive nonces and are serialized like writes of
 * one account.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table submissions add column signer text`.execute(db);
  await sql`create index submissions_open_by_signer on submissions (signer)
    where signer is not null and state in ('reserved', 'signed', 'sent')`.execute(db);
}
