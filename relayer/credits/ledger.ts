/**
 * The ledger: append-only, one row per posting, each between an account and one of the service's own books. The
 * account's balance is updated in the same transaction, so it always equals the sum of the account's entries.
 */
import { sql } from "kysely";
import type { AccountId, KeyId } from "../../protocol/ids";
import type { Db, Trx } from "../store/database";
import type { EntryKind, ContraAccount } from "../store/tables/credits";
import { offsetOf } from "./page";
import type { History, Page } from "./types";

const CONTRA: Readonly<Record<EntryKind, ContraAccount>> = {
  signup_credit: "promotions",
  top_up: "payments",
  refund: "payments",
  dispute: "payments",
  reversal: "payments",
  correction: "corrections",
  write: "revenue",
  run: "revenue",
};

export interface Posting {
  readonly accountId: AccountId;
  readonly kind: EntryKind;
  /** Not zero; positive = credit to the account. */
  readonly amountCents: number;
  readonly reference: string;
  /** The same operation always has the same key and posts once. */
  readonly postingKey: string;
}

export const contraOf = (kind: EntryKind): ContraAccount => CONTRA[kind];

/**
 * Posts and updates the balance, unless this posting key was used before. Returns whether it posted. The account's row
 * must exist.
 */
export async function post(trx: Trx, posting: Posting): Promise<boolean> {
  const inserted = await trx
    .insertInto("ledger_entries")
    .values({
      account_id: posting.accountId,
      contra: contraOf(posting.kind),
      amount_cents: posting.amountCents,
      kind: posting.kind,
      reference: posting.reference,
      posting_key: posting.postingKey,
      key_id: null,
    })
    .onConflict((conflict) => conflict.column("posting_key").doNothing())
    .returning("id")
    .executeTakeFirst();
  if (inserted === undefined) return false;
  await trx
    .updateTable("credit_accounts")
    .set({ balance_cents: sql`balance_cents + ${posting.amountCents}`, entries: sql`entries + 1` })
    .where("account_id", "=", posting.accountId)
    .execute();
  return true;
}

/**
 * Entries of the account, newest first, of those older than the entry `before` when given; `total` counts all.
 * @throws KeywrightError `invalid_value` for a page too far from the newest entry.
 */
export async function readHistory(db: Db, accountId: AccountId, page: Page, before?: number): Promise<History> {
  const account = await db
    .selectFrom("credit_accounts")
    .select("entries")
    .where("account_id", "=", accountId)
    .executeTakeFirst();
  const total = account?.entries ?? 0;
  const offset = offsetOf(page, total, "before");
  if (offset === undefined) return { entries: [], total };
  // Of the rows before the page only the index is visited.
  const onPage = db
    .selectFrom("ledger_entries")
    .select("id")
    .where("account_id", "=", accountId)
    .where("id", "<", before ?? Number.MAX_SAFE_INTEGER)
    .orderBy("id", "desc")
    .limit(page.size)
    .offset(offset);
  const rows = await db
    .selectFrom("ledger_entries as entry")
    .leftJoin("payments", (join) =>
      join.onRef("payments.intent_id", "=", "entry.reference").on("entry.contra", "=", "payments"),
    )
    .where("id", "in", onPage)
    .select(["id", "kind", "amount_cents", "reference", "key_id", "receipt_url", "entry.created_at"])
    .orderBy("id", "desc")
    .execute();
  const entries = rows.map((row) => ({
    id: row.id,
    kind: row.kind,
    amountCents: row.amount_cents,
    reference: row.reference,
    keyId: (row.key_id ?? undefined) as KeyId | undefined,
    receiptUrl: row.receipt_url ?? undefined,
    createdAt: row.created_at,
  }));
  return { entries, total };
}
