/** Ends writes as the transaction does that stores their outcome. */
import type { Reservations } from "../../relayer/credits/reservations";
import type { Db } from "../../relayer/store/database";

interface Bench {
  readonly db: Db;
  readonly credits: { readonly reservations: Pick<Reservations, "endWrites"> };
}

/** The cents that were charged for it. */
export async function endWrite({ db, credits }: Bench, submissionId: string, charged: boolean): Promise<number> {
  await db.transaction().execute((trx) => credits.reservations.endWrites([{ submissionId, charged }], trx));
  const ended = db.selectFrom("credit_reservations").select("cost_cents").where("id", "=", submissionId);
  return (await ended.executeTakeFirst())?.cost_cents ?? 0;
}
