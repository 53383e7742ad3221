/** Tells accounts that a usage key is about to expire: once for each key and expiry, if the contract confirms it. */
import { sql, type RawBuilder } from "kysely";
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

/** What the contract contradicts is asked again after these many seconds, each time doubled, and then each hour. */
const ASK_AGAIN_SECONDS = 30;
const MAX_DOUBLINGS = 7;

/** The offset has it looked up for each key: of all webhooks, few are of accounts whose keys are about to expire. */
const IS_WANTED = sql`exists (select from webhooks where webhooks.account_id = key_expiries.account_id
  and state = 'on' and jsonb_exists_any(events, array['*', 'key.*', 'key.expiring']) offset 0)`;

const DAY_SECONDS = 24 * 3600;
/** Of the column's type: compared with fractions, expiries are not looked up in their index. */
const NOW = sql`floor(extract(epoch from now()))::int8`;

/** Accounts take turns: one with thousands of such keys delays no other's. */
export async function tellOfExpiries(db: Db, chain: Pick<Chain, "key">): Promise<void> {
  const { rows } = await sql<Candidate>`
    select key_id, expires_at, account_id from key_expiries
    where not noticed and ask_at <= now() and expires_at > ${NOW}
      and expires_at <= ${NOW} + ${sql.lit(WEBHOOK_LIMITS.keyExpiringDays * DAY_SECONDS)}
      and ${IS_WANTED}
    order by row_number() over (partition by account_id order by ask_at), ask_at
    limit ${sql.lit(AT_A_TIME)}`.execute(db);
  for (const candidate of rows) await tell(db, chain, candidate);
}

async function tell(db: Db, chain: Pick<Chain, "key">, candidate: Candidate): Promise<void> {
  const { key_id: keyId, expires_at: expiresAt, account_id: accountId } = candidate;
  const key = await chain.key([keyId]);
  const isTrue = key?.live === true && key.accountId === accountId && key.expiresAtSeconds === BigInt(expiresAt);
  const same = sql`key_id = ${keyId} and expires_at = ${expiresAt} and account_id = ${accountId} and not noticed`;
  if (!isTrue) return askAgain(db, same);
  await db.transaction().execute(async (trx) => {
    const { rows } = await sql`update key_expiries set noticed = true where ${same} and ${IS_WANTED}
      returning key_id`.execute(trx);
    if (rows.length > 0) await enqueue(trx, accountId, "key.expiring", { api_key_hash: keyId, expires_at: expiresAt });
  });
}

/** Nothing is forgotten before it is past: an endpoint may be behind, or on a branch that does not last. */
async function askAgain(db: Db, same: RawBuilder<unknown>): Promise<void> {
  await sql`update key_expiries set contradictions = contradictions + 1,
    ask_at = now() + ${sql.lit(ASK_AGAIN_SECONDS)} * 2 ^ least(contradictions, ${sql.lit(MAX_DOUBLINGS)})
      * interval '1 second'
    where ${same}`.execute(db);
}
