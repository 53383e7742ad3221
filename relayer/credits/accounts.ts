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
