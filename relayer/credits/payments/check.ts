/**
 * Continuously compares the books with the payment processor, charge by charge: net receipts for this deployment must
 * equal the ledger's net credits. Paging keeps the load constant however long the history is. It reports differences
 * and repairs nothing.
 */
import { sql } from "kysely";
import type Stripe from "stripe";
import type { Db } from "../../store/database";
import { accountOf, CURRENCY, hasTakenMoney, idOf } from "./stripeFields";
import { ask } from "./processor";
import { defined } from "../../../protocol/defined";

/** As of the last complete pass. */
export interface ProcessorFigures {
  /** Received for this deployment and not returned, according to the processor. */
  readonly processorCents: number;
  /** The same amount according to the ledger's entries. */
  readonly ledgerCents: number;
  /** Available and pending balance at the processor, net of payouts and fees; other deployments may share it. */
  readonly balanceCents: number;
  /** Payments that still differ after the processor's events were applied again. */
  readonly wrong: number;
  readonly finishedAt: Date | undefined;
}

export interface PaymentDiscrepancy {
  /** Absent when the ledger credited payments that the processor does not know. */
  readonly intentId?: string;
  readonly processorCents: number;
  readonly ledgerCents: number;
}

const CHARGES_AT_A_TIME = 100;
/** Younger charges are left out: their events may still be in transit. */
const GRACE_SECONDS = 600;
const NOTHING_YET: ProcessorFigures = {
  processorCents: 0,
  ledgerCents: 0,
  balanceCents: 0,
  wrong: 0,
  finishedAt: undefined,
};

export interface ProcessorCheckOptions {
  readonly db: Db;
  readonly stripe: Stripe;
  readonly deployment: string;
  /** Applies the processor's events again. */
  readonly reconcile: () => Promise<unknown>;
  readonly onWrong: (found: PaymentDiscrepancy) => void;
  readonly graceSeconds?: number | undefined;
}

/** One payment as both sides see it. */
interface Looked {
  readonly charge: Stripe.Charge;
  readonly processorCents: number;
  readonly ledgerCents: number;
  /** The ledger's credit, before debits, of a payment that it knew before `until`. */
  readonly creditedCents: number;
}

interface Pass {
  /** Charges created until this time, in Unix seconds. */
  readonly until: number;
  after: string | undefined;
  processorCents: number;
  ledgerCents: number;
  creditedCents: number;
  readonly suspects: Looked[];
}

interface Booked {
  readonly cents: number;
  readonly creditedCents: number;
}

export class ProcessorCheck {
  #finished = NOTHING_YET;
  #pass: Pass | undefined;
  readonly #options: ProcessorCheckOptions;

  constructor(options: ProcessorCheckOptions) {
    this.#options = options;
  }

  get figures(): ProcessorFigures {
    return this.#finished;
  }

  /**
   * Compares the next page of charges; after the last page the pass is complete and the next one starts over. Throws
   * when the processor or the store does not answer: the caller repeats the turn.
   */
  async turn(): Promise<void> {
    const pass = (this.#pass ??= this.#newPass());
    const { data, has_more: hasMore } = await ask(() =>
      this.#options.stripe.charges.list({
        limit: CHARGES_AT_A_TIME,
        created: { lte: pass.until },
        ...defined({ starting_after: pass.after }),
      }),
    );
    await this.#compare(pass, data);
    pass.after = data.at(-1)?.id;
    if (hasMore && pass.after !== undefined) return;
    await this.#finish(pass);
    this.#pass = undefined;
  }

  #newPass(): Pass {
    const until = Math.floor(Date.now() / 1000) - (this.#options.graceSeconds ?? GRACE_SECONDS);
    return { until, after: undefined, processorCents: 0, ledgerCents: 0, creditedCents: 0, suspects: [] };
  }

  async #compare(pass: Pass, charges: readonly Stripe.Charge[]): Promise<void> {
    const looked = await this.#look(
      charges.filter((charge) => this.#isOfThisDeployment(charge)),
      pass.until,
    );
    for (const one of looked) {
      count(pass, one, 1);
      if (one.processorCents !== one.ledgerCents) pass.suspects.push(one);
    }
  }

  async #look(charges: readonly Stripe.Charge[], until: number): Promise<Looked[]> {
    const booked = await this.#booked(charges.map(intentOf), until);
    const looked: Looked[] = [];
    for (const charge of charges) {
      const { cents, creditedCents } = booked.get(intentOf(charge)) ?? { cents: 0, creditedCents: 0 };
      looked.push({ charge, processorCents: await this.#keptCents(charge), ledgerCents: cents, creditedCents });
    }
    return looked;
  }

  #isOfThisDeployment(charge: Stripe.Charge): boolean {
    const isPaid = charge.paid && charge.captured && charge.currency === CURRENCY;
    return isPaid && intentOf(charge) !== "" && accountOf(charge.metadata, this.#options.deployment) !== undefined;
  }

  /** What the processor has received and neither refunded nor lost to a dispute. */
  async #keptCents(charge: Stripe.Charge): Promise<number> {
    const disputed = charge.disputed ? await this.#disputedCents(intentOf(charge)) : 0;
    return charge.amount_captured - Math.min(charge.amount_captured, charge.amount_refunded + disputed);
  }

  async #disputedCents(intent: string): Promise<number> {
    const { data } = await ask(() => this.#options.stripe.disputes.list({ payment_intent: intent, limit: 100 }));
    return data.filter(hasTakenMoney).reduce((sum, { amount }) => sum + amount, 0);
  }

  /** Looks entries up by the posting keys of each payment, so that no entry list is scanned. */
  async #booked(intents: readonly string[], until: number): Promise<ReadonlyMap<string, Booked>> {
    const { rows } = await sql<{ intent_id: string; cents: number; credited: number }>`
      select intent_id, case when created_at < to_timestamp(${until}::float8) then credited_cents
        else 0 end as credited, (
        select coalesce(sum(amount_cents), 0)::int8 from ledger_entries where posting_key = any(
          array['top_up:' || intent_id] || array(select 'debit:' || intent_id || ':' || n
            from generate_series(1, adjustments) n)
        )
      ) as cents
      from payments where intent_id = any(${[...intents]}::text[])`.execute(this.#options.db);
    return new Map(rows.map(({ intent_id: intent, cents, credited }) => [intent, { cents, creditedCents: credited }]));
  }

  async #finish(pass: Pass): Promise<void> {
    const { stripe, onWrong } = this.#options;
    const wrong = await this.#stillWrong(pass);
    const unknown = (await this.#creditedCents(pass.until)) - pass.creditedCents;
    if (unknown !== 0) wrong.push({ processorCents: 0, ledgerCents: unknown });
    const balance = await ask(() => stripe.balance.retrieve());
    const inOurs = (funds: readonly { currency: string; amount: number }[]): number =>
      funds.filter(({ currency }) => currency === CURRENCY).reduce((sum, { amount }) => sum + amount, 0);
    for (const found of wrong) onWrong(found);
    this.#finished = {
      processorCents: pass.processorCents,
      ledgerCents: pass.ledgerCents + unknown,
      balanceCents: inOurs(balance.available) + inOurs(balance.pending),
      wrong: wrong.length,
      finishedAt: new Date(),
    };
  }

  /** A refund or dispute may have arrived between the two reads: read again, after applying the events. */
  async #stillWrong(pass: Pass): Promise<PaymentDiscrepancy[]> {
    if (pass.suspects.length === 0) return [];
    await this.#options.reconcile();
    const wrong: PaymentDiscrepancy[] = [];
    for (const suspect of pass.suspects.splice(0)) {
      const charge = await ask(() => this.#options.stripe.charges.retrieve(suspect.charge.id));
      count(pass, suspect, -1);
      for (const again of await this.#look([charge], pass.until)) {
        count(pass, again, 1);
        const { processorCents, ledgerCents } = again;
        if (processorCents !== ledgerCents) wrong.push({ intentId: intentOf(charge), processorCents, ledgerCents });
      }
    }
    return wrong;
  }

  /** Of all payments that the ledger knew before `until`; the processor's pages have covered each of them. */
  async #creditedCents(until: number): Promise<number> {
    const { rows } = await sql<{ cents: number }>`
      select coalesce(sum(credited_cents), 0)::int8 as cents from payments
        where created_at < to_timestamp(${until}::float8)`.execute(this.#options.db);
    return rows[0]?.cents ?? 0;
  }
}

function count(pass: Pass, { processorCents, ledgerCents, creditedCents }: Looked, sign: 1 | -1): void {
  pass.processorCents += sign * processorCents;
  pass.ledgerCents += sign * ledgerCents;
  pass.creditedCents += sign * creditedCents;
}

const intentOf = (charge: Stripe.Charge): string => idOf(charge.payment_intent) ?? "";
