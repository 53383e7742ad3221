/** Checks the ledger in the database: every stored figure equals the sum of its parts. */
import { expect } from "chai";
import { sql } from "kysely";
import type { Db } from "../../relayer/store/database";

/** Refunds, disputes, corrections and late settlements may bring a balance below zero or below what is reserved. */
const WITHOUT_EXCEPTIONS = `and not exists (select from ledger_entries e where e.account_id = a.account_id
      and e.kind in ('refund', 'dispute', 'correction'))
    and not exists (select from credit_reservations r where r.account_id = a.account_id
      and r.given_back and r.state = 'settled')`;

const RULES: readonly (readonly [string, string])[] = [
  [
    "a balance is the sum of its entries",
    `select a.account_id, a.balance_cents, coalesce(sum(e.amount_cents), 0) as entries from credit_accounts a
     left join ledger_entries e using (account_id) group by a.account_id
     having a.balance_cents <> coalesce(sum(e.amount_cents), 0)`,
  ],
  [
    "what an account has reserved is what its open reservations hold",
    `select a.account_id, a.reserved_cents, coalesce(sum(r.reserved_cents), 0) as held from credit_accounts a
     left join credit_reservations r on r.account_id = a.account_id and r.state = 'held'
     group by a.account_id having a.reserved_cents <> coalesce(sum(r.reserved_cents), 0)`,
  ],
  [
    "a key has spent the sum of its entries",
    `select k.key_id, k.spent_cents, coalesce(sum(e.amount_cents), 0) as entries from key_spending k
     left join ledger_entries e using (key_id) group by k.key_id
     having k.spent_cents <> -coalesce(sum(e.amount_cents), 0)`,
  ],
  [
    "what a key has reserved is what its open reservations hold",
    `select k.key_id, k.reserved_cents, coalesce(sum(r.reserved_cents), 0) as held from key_spending k
     left join credit_reservations r on r.key_id = k.key_id and r.state = 'held'
     group by k.key_id having k.reserved_cents <> coalesce(sum(r.reserved_cents), 0)`,
  ],
  [
    "a closed reservation cost what its entry says",
    `select r.id, r.cost_cents, e.amount_cents from credit_reservations r
     left join ledger_entries e on e.posting_key = r.kind || ':' || r.id
     where r.state <> 'held' and coalesce(-e.amount_cents, 0) <> r.cost_cents`,
  ],
  [
    "a payment was credited and debited as its entries say",
    `select p.intent_id from payments p left join ledger_entries e on e.reference = p.intent_id
     group by p.intent_id, p.credited_cents, p.debited_cents
     having p.credited_cents <> coalesce(sum(e.amount_cents) filter (where e.kind = 'top_up'), 0)
     or p.debited_cents <> -coalesce(sum(e.amount_cents) filter (where e.kind <> 'top_up'), 0)`,
  ],
  [
    "no balance is below zero except by refunds, disputes, corrections and late settlements",
    `select a.account_id, a.balance_cents from credit_accounts a where a.balance_cents < 0
     ${WITHOUT_EXCEPTIONS}`,
  ],
  [
    "no account has reserved more than its balance, with the same exceptions",
    `select a.account_id, a.balance_cents, a.reserved_cents from credit_accounts a
     where a.reserved_cents > a.balance_cents and a.reserved_cents > 0
     ${WITHOUT_EXCEPTIONS}`,
  ],
];

export async function expectBalancedBooks(db: Db): Promise<void> {
  for (const [rule, query] of RULES) {
    const { rows } = await sql.raw(query).execute(db);
    expect(rows, rule).to.deep.equal([]);
  }
}
