/** What an operator may change while relayers run: notes in the store that their instances act on within seconds. */
import { sql } from "kysely";
import type { Db } from "../../store/database";
import { OPEN_STATES } from "./states";

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

/** Gives a submission up: whoever watches it fills its nonce with nothing. False when there is nothing to give up. */
export async function cancelSubmission(db: Db, id: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("submissions")
    .set({ cancelled: true, updated_at: sql`now()` })
    .where("id", "=", id)
    .where("state", "in", OPEN_STATES)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
