import { LRUCache } from "lru-cache";
import type { AccountId, KeyId } from "../../protocol/ids";
import type { Db } from "../store/database";
import type { Balance } from "./types";

export async function ensureAccount(db: Db, accountId: AccountId): Promise<void> {
  await db
    .insertInto("credit_accounts")
    .values({ account_id: accountId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export async function ensureKey(db: Db, keyId: KeyId): Promise<void> {
  await db
    .insertInto("key_spending")
    .values({ key_id: keyId })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export async function readBalance(db: Db, accountId: AccountId): Promise<Balance> {
  const row = await db
    .selectFrom("credit_accounts")
    .select(["balance_cents", "reserved_cents"])
    .where("account_id", "=", accountId)
    .executeTakeFirst();
  return { balanceCents: row?.balance_cents ?? 0, reservedCents: row?.reserved_cents ?? 0 };
}

export async function readSpent(db: Db, keyIds: readonly KeyId[]): Promise<ReadonlyMap<KeyId, number>> {
  if (keyIds.length === 0) return new Map();
  const rows = await db
    .selectFrom("key_spending")
    .select(["key_id", "spent_cents"])
    .where("key_id", "in", keyIds)
    .execute();
  const spent = new Map(rows.map((row) => [row.key_id, row.spent_cents]));
  return new Map(keyIds.map((keyId) => [keyId, spent.get(keyId) ?? 0]));
}

/** The first address given is kept; it is the one passed to the payment processor. */
export async function rememberEmail(db: Db, accountId: AccountId, email: string): Promise<void> {
  await ensureAccount(db, accountId);
  await db
    .updateTable("credit_accounts")
    .set({ email })
    .where("account_id", "=", accountId)
    .where("email", "is", null)
    .execute();
}

/** Ids seen by this process, so that "insert if missing" costs one statement per process, not one per request. */
export class SeenIds {
  readonly #seen = new LRUCache<string, true>({ max: 50_000 });

  async once(id: string, first: () => Promise<unknown>): Promise<void> {
    if (this.#seen.get(id) !== undefined) return;
    await first();
    this.#seen.set(id, true);
  }
}
