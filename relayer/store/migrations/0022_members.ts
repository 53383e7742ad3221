import { sql, type Kysely } from "kysely";
import { IS_MEMBERSHIP, MEMBER } from "../tables/members";

/** Which groups list a PKP or an action, which members a group has, what the writes of a day cost: from an index. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index chain_events_by_member on chain_events (account_id, (${MEMBER}), cursor)
    where ${IS_MEMBERSHIP}`.execute(db);
  await sql`create index chain_events_by_group on chain_events (account_id, (args->>'groupId'), cursor)
    where ${IS_MEMBERSHIP}`.execute(db);
  await sql`create index ledger_writes_by_time on ledger_entries (account_id, created_at) where kind = 'write'`.execute(
    db,
  );
}
