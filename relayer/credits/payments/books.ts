/**
 * The effects of payments on the ledger. Every function moves the books to the state that the facts received so far
 * imply, so events may be duplicated, late or out of order: an intent is credited once, and its debit is what was
 * refunded and what is disputed and not reinstated, together at most what was credited.
 */
import { sql } from "kysely";
import type { AccountId } from "../../../protocol/ids";
import type { Db, Trx } from "../../store/database";
import { ensureAccount } from "../accounts";
import { post } from "../ledger";

export interface PaidIntent {
  readonly intentId: string;
  readonly accountId: AccountId;
  readonly amountCents: number;
}

/** A refund or a dispute of all or part of a payment. */
export interface Claim {
  readonly claimId: string;
  readonly kind: "refund" | "dispute";
  readonly intentId: string;
  readonly amountCents: number;
  /** The refund failed; or the dispute's money was returned or never taken. */
  readonly withdrawn: boolean;
  /** Creation time of the processor's event, in Unix seconds: events arrive in any order, the newest wins. */
  readonly toldAt: number;
}

/**
 * Credits a succeeded intent and immediately debits refunds and disputes recorded before it. Returns whether this call
 * credited.
 */
export async function creditIntent(db: Db, paid: PaidIntent): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    await ensureAccount(trx, paid.accountId);
    await lockPayment(trx, paid.intentId);
    const marked = await trx
      .updateTable("payments")
      .set({ account_id: paid.accountId, credited_cents: paid.amountCents })
      .where("intent_id", "=", paid.intentId)
      .where("credited_cents", "=", 0)
      .returning("intent_id")
      .executeTakeFirst();
    if (marked === undefined) return false;
    const { accountId, amountCents, intentId } = paid;
    await post(trx, { accountId, kind: "top_up", amountCents, reference: intentId, postingKey: `top_up:${intentId}` });
    await settleDebit(trx, intentId);
    return true;
  });
}

/** Records the processor's cumulative refund sum of a payment: the largest figure is the newest. */
export async function recordRefunded(db: Db, intentId: string, refundedCents: number): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockPayment(trx, intentId);
    await trx
      .updateTable("payments")
      .set({ refunded_cents: sql`greatest(refunded_cents, ${refundedCents}::int8)` })
      .where("intent_id", "=", intentId)
      .execute();
    await settleDebit(trx, intentId);
  });
}

/** Two events of the same second have no order: the claim then counts as withdrawn, the usual final state. */
const NEWEST_WITHDRAWN = sql<boolean>`case when excluded.told_at > payment_claims.told_at then excluded.withdrawn
  when excluded.told_at = payment_claims.told_at then payment_claims.withdrawn or excluded.withdrawn
    else payment_claims.withdrawn end`;

export async function recordClaim(db: Db, claim: Claim): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockPayment(trx, claim.intentId);
    await trx
      .insertInto("payment_claims")
      .values({
        ...{ claim_id: claim.claimId, kind: claim.kind, intent_id: claim.intentId, amount_cents: claim.amountCents },
        ...{ withdrawn: claim.withdrawn, told_at: claim.toldAt },
      })
      .onConflict((conflict) =>
        conflict.column("claim_id").doUpdateSet({
          withdrawn: NEWEST_WITHDRAWN,
          told_at: sql`greatest(payment_claims.told_at, excluded.told_at)`,
        }),
      )
      .execute();
    await settleDebit(trx, claim.intentId);
  });
}

/** Stores the receipt's URL; the newest one wins. */
export async function recordReceipt(db: Db, intentId: string, receiptUrl: string): Promise<void> {
  await db
    .insertInto("payments")
    .values({ intent_id: intentId, account_id: null, receipt_url: receiptUrl })
    .onConflict((conflict) => conflict.column("intent_id").doUpdateSet({ receipt_url: receiptUrl }))
    .execute();
}

/**
 * Inserts the payment's row if missing and locks it until the transaction ends: facts about one intent are applied one
 * at a time.
 */
async function lockPayment(trx: Trx, intentId: string): Promise<void> {
  await trx
    .insertInto("payments")
    .values({ intent_id: intentId, account_id: null, receipt_url: null })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await trx.selectFrom("payments").select("intent_id").where("intent_id", "=", intentId).forUpdate().execute();
}

/** Adjusts the debit to what the facts imply now. Only here can a payment take the account below zero. */
async function settleDebit(trx: Trx, intentId: string): Promise<void> {
  const payment = await trx
    .selectFrom("payments")
    .selectAll()
    .where("intent_id", "=", intentId)
    .executeTakeFirstOrThrow();
  if (payment.account_id === null) return;
  const { refunded, disputed } = await claimedBack(trx, intentId, payment.refunded_cents);
  const debit = Math.min(payment.credited_cents, refunded + disputed);
  const change = debit - payment.debited_cents;
  if (change === 0) return;
  const number = payment.adjustments + 1;
  await trx
    .updateTable("payments")
    .set({ debited_cents: debit, adjustments: number })
    .where("intent_id", "=", intentId)
    .execute();
  const kind = change < 0 ? "reversal" : disputed > refunded ? "dispute" : "refund";
  await post(trx, {
    accountId: payment.account_id as AccountId,
    kind,
    amountCents: -change,
    reference: intentId,
    postingKey: `debit:${intentId}:${number}`,
  });
}

/**
 * The amounts currently refunded and disputed. The cumulative sum counts as long as no refund is known to have failed:
 * after a failure it may be too small or too large, so the individual refunds count.
 */
async function claimedBack(
  trx: Trx,
  intentId: string,
  cumulativeCents: number,
): Promise<{ refunded: number; disputed: number }> {
  const claims = await trx.selectFrom("payment_claims").selectAll().where("intent_id", "=", intentId).execute();
  const standing = (kind: Claim["kind"]): number =>
    claims
      .filter((claim) => claim.kind === kind && !claim.withdrawn)
      .reduce((sum, claim) => sum + claim.amount_cents, 0);
  const oneFailed = claims.some((claim) => claim.kind === "refund" && claim.withdrawn);
  return {
    refunded: oneFailed ? standing("refund") : Math.max(cumulativeCents, standing("refund")),
    disputed: standing("dispute"),
  };
}
