/** What an operator may change while relayers run: notes in the store that their instances act on within seconds. */
import { sql } from "kysely";
import type { Db } from "../../store/database";
import { IS_OPEN } from "./states";

const WANTED_PAYERS = "wanted_payers";

/** How many payers are wanted, for all instances. */
export async function wantPayers(db: Db, count: number): Promise<void> {
  const value = JSON.stringify(count);
  await db
    .insertInto("chain_settings")
    .values({ name: WANTED_PAYERS, value })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
    .execute();
}

export async function wantedPayers(db: Db): Promise<number> {
  const setting = await db.selectFrom("chain_settings").select("value").where("name", "=", WANTED_PAYERS).executeTakeFirst();
  return Number(setting?.value ?? 0);
}

const WANTED_BALANCE = "wanted_balance";
/** So long a balance is kept up that a write has asked for. */
const WANTED_FOR_MS = 10 * 60_000;

/** A write costs so much that no payer could pay it: whoever maintains the payers tops them up to more. */
export async function wantBalance(db: Db, wei: bigint): Promise<void> {
  const value = JSON.stringify({ wei: wei.toString(), until: Date.now() + WANTED_FOR_MS });
  await sql`
    insert into chain_settings (name, value) values (${WANTED_BALANCE}, ${value}::jsonb)
    on conflict (name) do update set value = excluded.value
    where (chain_settings.value ->> 'until')::int8 < ${Date.now()}::int8 or (chain_settings.value ->> 'wei')::numeric <= ${wei.toString()}::numeric`.execute(
    db,
  );
}

/** Wei; 0 when no write has asked for more than payers usually have. */
export async function wantedBalance(db: Db): Promise<bigint> {
  const setting = await db.selectFrom("chain_settings").select("value").where("name", "=", WANTED_BALANCE).executeTakeFirst();
  const { wei = "0", until = 0 } = (setting?.value ?? {}) as { wei?: string; until?: number };
  return until > Date.now() ? BigInt(wei) : 0n;
}

/** Gives a submission up, and with it the batch it is in: whoever watches it fills the nonce with nothing. False when there is nothing to give up. */
export async function cancelSubmission(db: Db, id: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("submissions")
    .set({ cancelled: true, updated_at: sql`now()` })
    .where("id", "=", sql<string>`(select coalesce(batch_id, id) from submissions where id = ${id})`)
    .where(IS_OPEN)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
