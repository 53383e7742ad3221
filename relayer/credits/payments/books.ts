/**
 * What payments do to the ledger. Every function moves the books to where the facts heard so far say they belong, so events may come twice, late or in any
 * order: an intent is credited once, and its debit is max(refunded, disputed and not reinstated), never above what was credited.
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

/** A refund or a dispute: somebody wants the payment, or a part of it, back. */
export interface Claim {
  readonly claimId: string;
  readonly kind: "refund" | "dispute";
  readonly intentId: string;
  readonly amountCents: number;
  /** The refund failed; the dispute's money came back, or was never taken. */
  readonly withdrawn: boolean;
  /** When the processor made the event that says so, in Unix seconds: events may come in any order, the newest counts. */
  readonly toldAt: number;
}

/** Credits a succeeded intent, and takes back at once what was refunded or disputed before we heard of it. Returns whether this call credited. */
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

/** The cumulative sum of a payment's refunds, as the processor tells it: the largest figure heard is the newest. */
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

/** Of two events of one second the order cannot be told: then the claim is over, as it is in the end of most. */
const NEWEST_WITHDRAWN = sql<boolean>`case when excluded.told_at > payment_claims.told_at then excluded.withdrawn
  when excluded.told_at = payment_claims.told_at then payment_claims.withdrawn or excluded.withdrawn else payment_claims.withdrawn end`;

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
        conflict.column("claim_id").doUpdateSet({ withdrawn: NEWEST_WITHDRAWN, told_at: sql`greatest(payment_claims.told_at, excluded.told_at)` }),
      )
      .execute();
    await settleDebit(trx, claim.intentId);
  });
}

/** The payment's row, made if need be, locked until the transaction ends: facts about one intent are taken in one after another. */
async function lockPayment(trx: Trx, intentId: string): Promise<void> {
  await trx
    .insertInto("payments")
    .values({ intent_id: intentId, account_id: null })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await trx.selectFrom("payments").select("intent_id").where("intent_id", "=", intentId).forUpdate().execute();
}

/** Moves what has been taken back to where it belongs now. The account may go below zero here, and only here. */
async function settleDebit(trx: Trx, intentId: string): Promise<void> {
  const payment = await trx.selectFrom("payments").selectAll().where("intent_id", "=", intentId).executeTakeFirstOrThrow();
  if (payment.account_id === null) return;
  const { refunded, disputed } = await claimedBack(trx, intentId, payment.refunded_cents);
  const debit = Math.min(payment.credited_cents, Math.max(refunded, disputed));
  const change = debit - payment.debited_cents;
  if (change === 0) return;
  const number = payment.adjustments + 1;
  await trx.updateTable("payments").set({ debited_cents: debit, adjustments: number }).where("intent_id", "=", intentId).execute();
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
 * What is out at this moment. The cumulative sum counts as long as no refund is known to have failed: after that it may be smaller or larger than the truth,
 * and the refunds one by one are what counts.
 */
async function claimedBack(trx: Trx, intentId: string, cumulativeCents: number): Promise<{ refunded: number; disputed: number }> {
  const claims = await trx.selectFrom("payment_claims").selectAll().where("intent_id", "=", intentId).execute();
  const standing = (kind: Claim["kind"]): number =>
    claims.filter((claim) => claim.kind === kind && !claim.withdrawn).reduce((sum, claim) => sum + claim.amount_cents, 0);
  const oneFailed = claims.some((claim) => claim.kind === "refund" && claim.withdrawn);
  return { refunded: oneFailed ? standing("refund") : Math.max(cumulativeCents, standing("refund")), disputed: standing("dispute") };
}
