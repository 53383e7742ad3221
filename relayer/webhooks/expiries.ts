/** Tells accounts that a usage key is about to expire: once for each key and expiry, if the contract confirms it. */
import { sql } from "kysely";
import type { AccountId, KeyId } from "../../protocol/ids";
import { WEBHOOK_LIMITS } from "../../protocol/limits";
import type { Chain } from "../chain/types";
import type { Db } from "../store/database";
import { enqueue } from "../store/outbox";

const AT_A_TIME = 50;

interface Candidate {
  readonly key_id: KeyId;
  readonly expires_at: number;
  readonly account_id: AccountId;
}

export async function tellOfExpiries(db: Db, chain: Pick<Chain, "key">): Promise<void> {
  const { rows } = await sql<Candidate>`
    select key_id, expires_at, account_id from key_expiries
    where not noticed and expires_at > extract(epoch from now())
      and expires_at <= extract(epoch from now() + ${WEBHOOK_LIMITS.keyExpiringDays} * interval '1 day')
      and exists (select from webhooks where webhooks.account_id = key_expiries.account_id and state = 'on'
        and jsonb_exists_any(events, array['*', 'key.*', 'key.expiring']))
    order by expires_at limit ${sql.lit(AT_A_TIME)}`.execute(db);
  for (const candidate of rows) await tell(db, chain, candidate);
}

async function tell(db: Db, chain: Pick<Chain, "key">, candidate: Candidate): Promise<void> {
  const { key_id: keyId, expires_at: expiresAt, account_id: accountId } = candidate;
  const key = await chain.key([keyId]);
  const isTrue = key?.live === true && key.accountId === accountId && key.expiresAtSeconds === BigInt(expiresAt);
  const same = sql`key_id = ${keyId} and expires_at = ${expiresAt} and not noticed`;
  await db.transaction().execute(async (trx) => {
    // What the contract contradicts is forgotten: if the key gets this expiry again, an event of the contract says so.
    if (!isTrue) return sql`delete from key_expiries where ${same}`.execute(trx);
    const { rows } = await sql`update key_expiries set noticed = true where ${same} returning key_id`.execute(trx);
    if (rows.length > 0) await enqueue(trx, accountId, "key.expiring", { api_key_hash: keyId, expires_at: expiresAt });
    return undefined;
  });
}
