/**
 * Advisory locks that transactions hold until they end. PostgreSQL knows them by numbers, in one space for those given
 * as one number and one for those given as two. What is hashed always comes second, after the class of its use: ids can
 * be made whose texts hash like any other, and must meet no lock of another use.
 */
import { sql } from "kysely";
import type { AccountId } from "../../protocol/ids";
import type { Trx } from "./database";

/** Arbitrary, and different. Migrations repeat some of them in the functions that they make. */
const NUMBERS = {
  signupCredit: 7_315_001,
  mintCounts: 7_315_002,
};
const CLASSES = {
  chainEvents: 7_315_003,
  webhooks: 7_315_004,
  webhooksOfAccount: 7_315_005,
  triggersOfAccount: 7_315_006,
  hooksOfAccount: 7_315_007,
};

export const lock = (trx: Trx, use: keyof typeof NUMBERS): Promise<unknown> =>
  sql`select pg_advisory_xact_lock(${sql.lit(NUMBERS[use])})`.execute(trx);

/** Accounts with the same hash wait for each other. */
export const lockAccount = (
  trx: Trx,
  use: "webhooksOfAccount" | "triggersOfAccount" | "hooksOfAccount",
  accountId: AccountId,
): Promise<unknown> => sql`select pg_advisory_xact_lock(${sql.lit(CLASSES[use])}, hashtext(${accountId}))`.execute(trx);

/** A change of owner waits, and is waited for; others who change webhooks do not wait. */
export const lockWebhooks = (trx: Trx): Promise<unknown> =>
  sql`select pg_advisory_xact_lock_shared(${sql.lit(CLASSES.webhooks)}, 0)`.execute(trx);

/**
 * No other follower moves, also none of a relayer from before the classes: two that move at once would store events
 * twice, or in an order that readers miss. The next version takes the second lock only.
 */
export const lockChainEvents = (trx: Trx): Promise<unknown> =>
  sql`select pg_advisory_xact_lock(hashtext('chain_events')) as earlier,
    pg_advisory_xact_lock(${sql.lit(CLASSES.chainEvents)}, 0) as own`.execute(trx);
