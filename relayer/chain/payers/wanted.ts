/** How many payers and what balance are wanted: stored values that all instances apply within seconds. */
import { sql } from "kysely";
import type { Db } from "../../store/database";

const WANTED_PAYERS = "wanted_payers";

/** Sets the wanted number of payers for all instances. */
export async function wantPayers(db: Db, count: number): Promise<void> {
  const value = JSON.stringify(count);
  await db
    .insertInto("chain_settings")
    .values({ name: WANTED_PAYERS, value })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
    .execute();
}

export async function wantedPayers(db: Db): Promise<number> {
  const setting = await db
    .selectFrom("chain_settings")
    .select("value")
    .where("name", "=", WANTED_PAYERS)
    .executeTakeFirst();
  return Number(setting?.value ?? 0);
}

const WANTED_BALANCE = "wanted_balance";
/** How long a balance requested by a write is maintained. */
const WANTED_FOR_MS = 10 * 60_000;

/** Requests a higher balance for a write that no payer could afford; payer maintenance tops up to it. */
export async function wantBalance(db: Db, wei: bigint): Promise<void> {
  const value = JSON.stringify({ wei: wei.toString(), until: Date.now() + WANTED_FOR_MS });
  await sql`
    insert into chain_settings (name, value) values (${WANTED_BALANCE}, ${value}::jsonb)
    on conflict (name) do update set value = excluded.value
    where (chain_settings.value ->> 'until')::int8 < ${Date.now()}::int8
      or (chain_settings.value ->> 'wei')::numeric <= ${wei.toString()}::numeric`.execute(db);
}

/** In wei; 0 when no write has requested more than the usual balance. */
export async function wantedBalance(db: Db): Promise<bigint> {
  const setting = await db
    .selectFrom("chain_settings")
    .select("value")
    .where("name", "=", WANTED_BALANCE)
    .executeTakeFirst();
  const { wei = "0", until = 0 } = (setting?.value ?? {}) as { wei?: string; until?: number };
  return until > Date.now() ? BigInt(wei) : 0n;
}
