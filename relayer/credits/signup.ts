import { sql } from "kysely";
import type { AccountId } from "../../protocol/ids";
import type { Db, Trx } from "../store/database";
import { lock } from "../store/locks";
import { ensureAccount } from "./accounts";
import { post } from "./ledger";

export interface SignupCredit {
  readonly cents: number;
  /** Daily cap over all accounts (UTC, the database's clock); undefined = no cap, for development only. */
  readonly dailyCapCents: number | undefined;
  /**
   * Also grants it to accounts created on chain, on first sight: only for the development chain, since anyone can
   * create any number of them.
   */
  readonly everyAccount: boolean;
}

/** Once per account id, however many calls run concurrently. Returns the cents granted by this call. */
export async function grantSignupCredit(db: Db, signup: SignupCredit, accountId: AccountId): Promise<number> {
  await ensureAccount(db, accountId);
  if (signup.cents === 0) return 0;
  return db.transaction().execute(async (trx) => {
    if (signup.dailyCapCents !== undefined && !(await fitsUnderCap(trx, signup.cents, signup.dailyCapCents))) return 0;
    const posting = {
      accountId,
      kind: "signup_credit",
      amountCents: signup.cents,
      reference: accountId,
      postingKey: `signup:${accountId}`,
    } as const;
    return (await post(trx, posting)) ? signup.cents : 0;
  });
}

async function fitsUnderCap(trx: Trx, cents: number, dailyCapCents: number): Promise<boolean> {
  // One after the other: together, each would be the last under the cap.
  await lock(trx, "signupCredit");
  const { granted } = await trx
    .selectFrom("ledger_entries")
    .select(sql<number>`coalesce(sum(amount_cents), 0)::int8`.as("granted"))
    .where("kind", "=", "signup_credit")
    .where(sql<boolean>`created_at >= date_trunc('day', now() at time zone 'UTC') at time zone 'UTC'`)
    .executeTakeFirstOrThrow();
  return granted + cents <= dailyCapCents;
}
