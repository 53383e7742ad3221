/** Accounts as payers: what they have, what their keys have spent, and their history. */
import { LRUCache } from "lru-cache";
import type { AccountId, KeyId } from "../../protocol/ids";
import type { Db } from "../store/database";
import { ensureAccount, ensureKey, readBalance } from "./accounts";
import { limitedKeys, setKeyLimits } from "./keyLimits";
import { readHistory } from "./ledger";
import { grantSignupCredit, type SignupCredit } from "./signup";
import type { Balance, History, KeyLimits, LimitedKey, Page, Spender } from "./types";

export class CreditAccounts {
  readonly #db: Db;
  readonly #signup: SignupCredit;
  readonly #accounts = new SeenIds();
  readonly #keys = new SeenIds();

  constructor(db: Db, signup: SignupCredit) {
    this.#db = db;
    this.#signup = signup;
  }

  /** The account's balance; 0 for an account not seen before (plus the signup credit, where every account gets it). */
  async balance(accountId: AccountId): Promise<Balance> {
    await this.#ensureAccount(accountId);
    return readBalance(this.#db, accountId);
  }

  /** What each key has spent over its life, settled operations only. Unknown keys count 0. */
  async spentCents(keyIds: readonly KeyId[]): Promise<ReadonlyMap<KeyId, number>> {
    if (keyIds.length === 0) return new Map();
    const rows = await this.#db
      .selectFrom("key_spending")
      .select(["key_id", "spent_cents"])
      .where("key_id", "in", keyIds)
      .execute();
    const spent = new Map(rows.map((row) => [row.key_id, row.spent_cents]));
    return new Map(keyIds.map((keyId) => [keyId, spent.get(keyId) ?? 0]));
  }

  /** Replaces all limits of a usage key of the account. What counted before still counts. */
  setKeyLimits(accountId: AccountId, keyId: KeyId, limits: KeyLimits): Promise<void> {
    return setKeyLimits(this.#db, accountId, keyId, limits);
  }

  /** The account's usage keys that have limits, by id. */
  limitedKeys(accountId: AccountId, page: Page): Promise<{ items: readonly LimitedKey[]; total: number }> {
    return limitedKeys(this.#db, accountId, page);
  }

  /** See `readHistory`. */
  history(accountId: AccountId, page: Page, before?: number): Promise<History> {
    return readHistory(this.#db, accountId, page, before);
  }

  /**
   * Grants once per account id, under the global daily cap; returns the cents granted by this call (0 when already
   * granted or the cap is reached).
   */
  grantSignupCredit(accountId: AccountId): Promise<number> {
    return grantSignupCredit(this.#db, this.#signup, accountId);
  }

  /** Stored for the payment processor and passed on with the first intent: the first address given. */
  async rememberEmail(accountId: AccountId, email: string): Promise<void> {
    await ensureAccount(this.#db, accountId);
    await this.#db
      .updateTable("credit_accounts")
      .set({ email })
      .where("account_id", "=", accountId)
      .where("email", "is", null)
      .execute();
  }

  /** Inserts the rows of account and key that a reservation needs. */
  async ensureSpender({ accountId, keyId }: Spender): Promise<void> {
    await this.#ensureAccount(accountId);
    if (keyId !== undefined) await this.#keys.once(keyId, () => ensureKey(this.#db, keyId));
  }

  /** For a row that was missing after all: a failover or a restore takes back what this process has inserted. */
  async ensureSpenderAgain(spender: Spender): Promise<void> {
    this.#accounts.forget(spender.accountId);
    if (spender.keyId !== undefined) this.#keys.forget(spender.keyId);
    await this.ensureSpender(spender);
  }

  /**
   * On first sight of an account in this process: inserts its row and, where every account gets one, grants its signup
   * credit.
   */
  async #ensureAccount(accountId: AccountId): Promise<void> {
    const first = this.#signup.everyAccount
      ? () => this.grantSignupCredit(accountId)
      : () => ensureAccount(this.#db, accountId);
    await this.#accounts.once(accountId, first);
  }
}

/** Ids seen by this process, so that "insert if missing" costs one statement per process, not one per request. */
class SeenIds {
  readonly #seen = new LRUCache<string, true>({ maxSize: 50_000, sizeCalculation: () => 1 });

  async once(id: string, first: () => Promise<unknown>): Promise<void> {
    if (this.#seen.get(id) !== undefined) return;
    await first();
    this.#seen.set(id, true);
  }

  forget(id: string): void {
    this.#seen.delete(id);
  }
}
