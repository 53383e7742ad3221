/**
 * Continuously audits the ledger, one page of accounts at a time: balances must equal the sum of their entries,
 * reserved sums the held reservations. Paging keeps the load constant however long the ledger is; metrics show the sums
 * of the last complete pass.
 */
import { sql } from "kysely";
import type { Db } from "../store/database";

export interface AuditFigures {
  /** Of the last complete pass. */
  readonly accounts: number;
  readonly balanceCents: number;
  readonly reservedCents: number;
  /**
   * Accounts whose figures do not follow from their entries and reservations, or that were spent below zero; each is
   * logged.
   */
  readonly wrong: number;
  readonly finishedAt: Date | undefined;
}

export interface Discrepancy {
  readonly accountId: string;
  readonly rule: string;
}

const ACCOUNTS_AT_A_TIME = 500;
const NOTHING_YET: AuditFigures = { accounts: 0, balanceCents: 0, reservedCents: 0, wrong: 0, finishedAt: undefined };

interface Piece {
  readonly accounts: number;
  readonly last: string | null;
  readonly balance: number;
  readonly reserved: number;
  readonly wrong: readonly Discrepancy[];
}

export class Audit {
  #finished = NOTHING_YET;
  #pass = NOTHING_YET;
  #after = "";
  readonly #db: Db;
  readonly #onWrong: (found: Discrepancy) => void;

  constructor(db: Db, onWrong: (found: Discrepancy) => void) {
    this.#db = db;
    this.#onWrong = onWrong;
  }

  get figures(): AuditFigures {
    return this.#finished;
  }

  /** Audits the next page of accounts; after the last page the pass is complete and the next one starts over. */
  async turn(): Promise<void> {
    const piece = await this.#look();
    for (const found of piece.wrong) this.#onWrong(found);
    this.#pass = {
      accounts: this.#pass.accounts + piece.accounts,
      balanceCents: this.#pass.balanceCents + piece.balance,
      reservedCents: this.#pass.reservedCents + piece.reserved,
      wrong: this.#pass.wrong + piece.wrong.length,
      finishedAt: new Date(),
    };
    this.#after = piece.last ?? "";
    if (piece.accounts === ACCOUNTS_AT_A_TIME) return;
    this.#finished = this.#pass;
    this.#pass = NOTHING_YET;
    this.#after = "";
  }

  /** One statement, so that all figures come from one snapshot. */
  async #look(): Promise<Piece> {
    const { rows } = await sql<Piece>`
      with piece as (
        select account_id, balance_cents, reserved_cents from credit_accounts where account_id > ${this.#after}
        order by account_id limit ${sql.lit(ACCOUNTS_AT_A_TIME)}
      ), posted as (
        select account_id, sum(amount_cents)::int8 as cents,
          bool_or(kind in ('refund', 'dispute', 'correction')) as may_owe
        from ledger_entries where account_id in (select account_id from piece) group by account_id
      ), held as (
        select account_id, sum(reserved_cents)::int8 as cents from credit_reservations
        where state = 'held' and account_id in (select account_id from piece) group by account_id
      ), compared as (
        select piece.*, case
          when balance_cents <> coalesce(posted.cents, 0) then 'a balance is the sum of its entries'
          when reserved_cents <> coalesce(held.cents, 0) then 'what is reserved is what open reservations hold'
          when balance_cents < 0 and not coalesce(may_owe, false) and not exists (
            select from credit_reservations late where late.account_id = piece.account_id and given_back
              and state = 'settled'
          ) then 'a balance is below zero without refunds, disputes, corrections or late settlements'
        end as rule
        from piece left join posted using (account_id) left join held using (account_id)
      )
      select count(*) as accounts, max(account_id) as last, coalesce(sum(balance_cents), 0)::int8 as balance,
        coalesce(sum(reserved_cents), 0)::int8 as reserved,
        coalesce(json_agg(json_build_object('accountId', account_id, 'rule', rule)) filter (where rule is not null),
          '[]') as wrong
      from compared`.execute(this.#db);
    return rows[0] ?? { accounts: 0, last: null, balance: 0, reserved: 0, wrong: [] };
  }
}
