/**
 * What payments do to the ledger. Every function moves the books to where the facts heard so far say they belong, so events may come twice, late or in any
 * order: an intent is credited once, and its debit is max(refunded, disputed and not reinstated), never above what was credited.
 */
import { sql } from "kysely";
import type { AccountId } from "../../../protocol/ids";
import type { Db, Trx } from "../../store/database";
import type { EntryKind } from "../../store/tables/credits";
import { ensureAccount } from "../accounts";
import { post } from "../ledger";

export interface PaidIntent {
  readonly intentId: string;
  readonly accountId: AccountId;
  readonly amountCents: number;
}

export interface Dispute {
  readonly disputeId: string;
  readonly intentId: string;
  readonly amountCents: number;
  readonly reinstated: boolean;
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

/** `refundedCents` is cumulative and only grows, so the largest figure heard is the newest. */
export async function recordRefund(db: Db, intentId: string, refundedCents: number): Promise<void> {
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

export async function recordDispute(db: Db, dispute: Dispute): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockPayment(trx, dispute.intentId);
    await trx
      .insertInto("payment_disputes")
      .values({ dispute_id: dispute.disputeId, intent_id: dispute.intentId, amount_cents: dispute.amountCents, reinstated: dispute.reinstated })
      .onConflict((conflict) => conflict.column("dispute_id").doUpdateSet({ reinstated: sql`payment_disputes.reinstated or excluded.reinstated` }))
      .execute();
    await settleDebit(trx, dispute.intentId);
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
  const disputed = await openDisputes(trx, intentId);
  const debit = Math.min(payment.credited_cents, Math.max(payment.refunded_cents, disputed));
  const change = debit - payment.debited_cents;
  if (change === 0) return;
  const number = payment.adjustments + 1;
  await trx.updateTable("payments").set({ debited_cents: debit, adjustments: number }).where("intent_id", "=", intentId).execute();
  const kind: EntryKind = change < 0 ? "dispute_reversal" : disputed > payment.refunded_cents ? "dispute" : "refund";
  await post(trx, {
    accountId: payment.account_id as AccountId,
    kind,
    amountCents: -change,
    reference: intentId,
    postingKey: `debit:${intentId}:${number}`,
  });
}

async function openDisputes(trx: Trx, intentId: string): Promise<number> {
  const { cents } = await trx
    .selectFrom("payment_disputes")
    .select(sql<number>`coalesce(sum(amount_cents), 0)::int8`.as("cents"))
    .where("intent_id", "=", intentId)
    .where("reinstated", "=", false)
    .executeTakeFirstOrThrow();
  return cents;
}
