/**
 * Continuously audits the ledger, a bounded number of entries at a time: balances must equal the sum of their entries,
 * reserved sums the held reservations. So the load is constant however long the ledger and one account's part of it
 * are; metrics show the sums of the last complete pass.
 */
import { sql } from "kysely";
import type { Db } from "../store/database";

export interface AuditFigures {
  /** Of the last complete pass. */
  readonly accounts: number;
  readonly balanceCents: number;
  readonly reservedCents: number;
  /**
   * Accounts whose figures do not follow from their entries and reservations, or that were spent below zero, of the
   * pass under way if they are more; each is logged.
   */
  readonly wrong: number;
  readonly finishedAt: Date | undefined;
  /** When it went on last: a pass over many entries takes days. */
  readonly turnedAt: Date | undefined;
}

export interface Discrepancy {
  readonly accountId: string;
  readonly rule: string;
}

const ACCOUNTS_AT_A_TIME = 500;
/** PostgreSQL's code of a statement that took too long. */
const QUERY_CANCELED = "57014";
const NOTHING_YET = { accounts: 0, balanceCents: 0, reservedCents: 0, wrong: 0 };

interface Page {
  readonly accounts: number;
  readonly balance: number;
  readonly reserved: number;
  readonly wrong: readonly Discrepancy[];
}

/** An account with more entries than one turn reads: what those up to `lastId` sum to. */
interface PartlyRead {
  readonly accountId: string;
  readonly lastId: number;
  readonly cents: number;
}

export interface AuditOptions {
  readonly db: Db;
  readonly onWrong: (found: Discrepancy) => void;
  /** Bounds the work of a turn; default 10,000. */
  readonly entriesAtATime?: number;
}

export class Audit {
  #finished: Omit<AuditFigures, "turnedAt"> = { ...NOTHING_YET, finishedAt: undefined };
  #pass = NOTHING_YET;
  #turnedAt: Date | undefined;
  #after = "";
  #partlyRead: PartlyRead | undefined;
  readonly #db: Db;
  readonly #onWrong: (found: Discrepancy) => void;
  readonly #entriesAtATime: number;

  constructor({ db, onWrong, entriesAtATime = 5_000 }: AuditOptions) {
    this.#db = db;
    this.#onWrong = onWrong;
    this.#entriesAtATime = entriesAtATime;
  }

  get figures(): AuditFigures {
    const wrong = Math.max(this.#finished.wrong, this.#pass.wrong);
    return { ...this.#finished, wrong, turnedAt: this.#turnedAt };
  }

  /**
   * Audits the next accounts, or reads more of an account with many entries. After the last account the pass is
   * complete and the next one starts over.
   */
  async turn(): Promise<void> {
    await this.#step();
    this.#turnedAt = new Date();
  }

  async #step(): Promise<void> {
    if (this.#partlyRead !== undefined) return this.#readOn(this.#partlyRead);
    const ids = await this.#nextAccounts();
    const [first] = ids;
    if (first === undefined) return this.#finish();
    if ((await this.#entriesOf(first)) > this.#entriesAtATime)
      return this.#readOn({ accountId: first, lastId: 0, cents: 0 });
    await this.#add(await this.#compare(ids), ids);
  }

  #finish(): void {
    this.#finished = { ...this.#pass, finishedAt: new Date() };
    this.#pass = NOTHING_YET;
    this.#after = "";
  }

  #add(page: Page, ids: readonly string[]): void {
    for (const found of page.wrong) this.#onWrong(found);
    this.#pass = {
      accounts: this.#pass.accounts + page.accounts,
      balanceCents: this.#pass.balanceCents + page.balance,
      reservedCents: this.#pass.reservedCents + page.reserved,
      wrong: this.#pass.wrong + page.wrong.length,
    };
    this.#after = ids.at(-1) ?? "";
  }

  /** As many as have few enough entries together; at least one. */
  async #nextAccounts(): Promise<readonly string[]> {
    const { rows } = await sql<{ account_id: string }>`
      select account_id from (
        select account_id, sum(entries) over (order by account_id) as entries, row_number() over (order by account_id)
          as place
        from (select account_id, entries from credit_accounts where account_id > ${this.#after}
          order by account_id limit ${sql.lit(ACCOUNTS_AT_A_TIME)}) as page
      ) as counted where place = 1 or entries <= ${this.#entriesAtATime}::int8 order by account_id`.execute(this.#db);
    return rows.map(({ account_id: id }) => id);
  }

  async #entriesOf(accountId: string): Promise<number> {
    const row = await this.#db
      .selectFrom("credit_accounts")
      .select("entries")
      .where("account_id", "=", accountId)
      .executeTakeFirst();
    return row?.entries ?? 0;
  }

  async #readOn({ accountId, lastId, cents }: PartlyRead): Promise<void> {
    const { rows } = await sql<{ n: number; last: number | null; cents: number }>`
      select count(*)::int8 as n, max(id) as last, coalesce(sum(amount_cents), 0)::int8 as cents from (
        select id, amount_cents from ledger_entries where account_id = ${accountId} and id > ${lastId}
        order by id limit ${this.#entriesAtATime}::int8) as page`.execute(this.#db);
    const page = rows[0] ?? { n: 0, last: null, cents: 0 };
    const read = { accountId, lastId: page.last ?? lastId, cents: cents + page.cents };
    this.#partlyRead = page.n < this.#entriesAtATime ? undefined : read;
    if (this.#partlyRead !== undefined) return;
    const compared = await this.#compare([accountId], read);
    // An entry with a lower id may have been committed after that part was read: then all are read at once. Where they
    // are too many for one statement, it is told as it is: others' turn comes all the same.
    const whole = (): Promise<Page> =>
      this.#compare([accountId]).catch((error: unknown) => {
        // The store says of every transient condition that the database is unavailable.
        const { cause } = error as { cause?: { code?: string } };
        if (cause?.code !== QUERY_CANCELED) throw error;
        return compared;
      });
    this.#add(compared.wrong.length === 0 ? compared : await whole(), [accountId]);
  }

  /** One statement, so that all figures come from one snapshot. `read`: entries that need not be read again. */
  async #compare(ids: readonly string[], read: Omit<PartlyRead, "accountId"> = { lastId: 0, cents: 0 }): Promise<Page> {
    const { rows } = await sql<Page>`
      with page as (
        select account_id, balance_cents, reserved_cents from credit_accounts
        where account_id = any(${[...ids]}::text[])
      ), posted as (
        select account_id, sum(amount_cents)::int8 as cents
        from ledger_entries where account_id = any(${[...ids]}::text[]) and id > ${read.lastId} group by account_id
      ), held as (
        select account_id, sum(reserved_cents)::int8 as cents from credit_reservations
        where state = 'held' and account_id in (select account_id from page) group by account_id
      ), compared as (
        select page.*, case
          when balance_cents <> coalesce(posted.cents, 0) + ${read.cents}::int8
            then 'a balance is the sum of its entries'
          when reserved_cents <> coalesce(held.cents, 0) then 'what is reserved is what open reservations hold'
          when balance_cents < 0 and not exists (
            select from ledger_entries taken where taken.account_id = page.account_id
              and kind in ('refund', 'dispute', 'correction')
          ) and not exists (
            select from credit_reservations late where late.account_id = page.account_id and given_back
              and state = 'settled'
          ) then 'a balance is below zero without refunds, disputes, corrections or late settlements'
        end as rule
        from page left join posted using (account_id) left join held using (account_id)
      )
      select count(*) as accounts, coalesce(sum(balance_cents), 0)::int8 as balance,
        coalesce(sum(reserved_cents), 0)::int8 as reserved,
        coalesce(json_agg(json_build_object('accountId', account_id, 'rule', rule)) filter (where rule is not null),
          '[]') as wrong
      from compared`.execute(this.#db);
    return rows[0] ?? { accounts: 0, balance: 0, reserved: 0, wrong: [] };
  }
}
