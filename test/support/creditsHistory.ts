/** Performs operations on credits of several instances, and knows what every account must have afterwards. */
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { sql } from "kysely";
import Stripe from "stripe";
import type { AccountId, KeyId } from "../../protocol/ids";
import { KeywrightError } from "../../protocol/errors";
import type { StripeDouble } from "../../scripts/dev/stripe/server";
import { expectBalancedBooks } from "./books";
import { endWrite } from "./endedWrite";
import {
  freshAccount,
  freshKey,
  fund,
  openCredits,
  paymentKeys,
  reservationsOf,
  WEBHOOK_SECRET,
  type CreditsBench,
} from "./credits";

export const ACCOUNTS = 3;
const START_CENTS = 60;
const CAP_CENTS = 40;

export type End = "settle" | "release" | "vanish";
export type Act =
  | { kind: "topUp"; account: number; cents: number; confirms: number; card: string }
  | { kind: "run"; account: number; capped: boolean; limitSeconds: number; durationMs: number; end: End }
  | { kind: "write"; account: number; capped: boolean; cents: number; bind: boolean; end: End }
  | { kind: "refund"; payment: number; cents: number }
  | { kind: "dispute"; payment: number; won: boolean }
  | { kind: "event"; which: number }
  | { kind: "crash"; instance: number };

interface Payment {
  readonly id: string;
  readonly account: number;
  readonly cents: number;
}

export class CreditsHistory {
  readonly #accounts: AccountId[] = Array.from({ length: ACCOUNTS }, freshAccount);
  readonly #keys: KeyId[] = Array.from({ length: ACCOUNTS }, freshKey);
  #instances: CreditsBench[] = [];
  readonly #crashed: CreditsBench[] = [];
  readonly #payments: Payment[] = [];
  /** The cost of acknowledged runs and writes per account. */
  readonly #costs = new Array<number>(ACCOUNTS).fill(0);
  readonly #keyCosts = new Array<number>(ACCOUNTS).fill(0);
  /** Submissions whose instance died before their outcome was known. */
  readonly #open: {
    readonly id: string;
    readonly account: number;
    readonly capped: boolean;
    readonly mined: boolean;
  }[] = [];
  readonly #double: StripeDouble;
  readonly #stripe: Stripe;

  constructor(double: StripeDouble, stripe: Stripe) {
    this.#double = double;
    this.#stripe = stripe;
  }

  async open(): Promise<void> {
    this.#instances = [await this.#instance(), await this.#instance()];
    for (const id of this.#accounts) await fund(this.#db, id, START_CENTS);
  }

  #instance(): Promise<CreditsBench> {
    return openCredits({ payments: paymentKeys(this.#double) });
  }

  get #db(): CreditsBench["db"] {
    return this.#any().db;
  }

  #any(): CreditsBench {
    return this.#instances[Math.floor(Math.random() * this.#instances.length)] as CreditsBench;
  }

  /** A refusal is a valid answer; any other error is not. */
  async perform(one: Act): Promise<void> {
    try {
      await this.#act(one);
    } catch (error) {
      const refused = error instanceof KeywrightError && ["insufficient_credit", "key_cap_spent"].includes(error.code);
      if (!refused && !(error instanceof Stripe.errors.StripeInvalidRequestError)) throw error;
    }
  }

  #act(one: Act): Promise<unknown> {
    switch (one.kind) {
      case "topUp":
        return this.#topUp(one);
      case "run":
        return this.#run(one);
      case "write":
        return this.#write(one);
      case "refund":
        return this.#onPayment(one.payment, ({ id }) =>
          this.#stripe.refunds.create({ payment_intent: id, amount: one.cents }),
        );
      case "dispute":
        return this.#onPayment(one.payment, ({ id }) => this.#endDispute(id, one.won));
      case "event":
        return this.#deliver(this.#events()[one.which]);
      case "crash":
        return this.#crash(one.instance);
    }
  }

  async #topUp({ account: index, cents, confirms, card }: Extract<Act, { kind: "topUp" }>): Promise<void> {
    const accountId = this.#accounts[index] as AccountId;
    const { paymentIntentId: id } = await this.#any().credits.payments.intents.create({
      accountId,
      amountCents: cents,
    });
    await this.#stripe.paymentIntents.confirm(id, { payment_method: card });
    this.#payments.push({ id, account: index, cents });
    await Promise.all(
      Array.from({ length: confirms }, () => this.#any().credits.payments.intents.confirm(accountId, id)),
    );
  }

  async #run({
    account: index,
    capped,
    limitSeconds,
    durationMs,
    end: how,
  }: Extract<Act, { kind: "run" }>): Promise<void> {
    const { credits } = this.#any();
    const { reservationId, limitMs } = await credits.reservations.reserveRun({
      ...this.#spender(index, capped),
      limitMs: limitSeconds * 1000,
    });
    if (how === "release") await credits.reservations.releaseRun(reservationId);
    if (how === "settle")
      this.#charge(index, capped, await credits.reservations.settleRun(reservationId, Math.min(durationMs, limitMs)));
  }

  async #write({ account: index, capped, cents, bind, end: how }: Extract<Act, { kind: "write" }>): Promise<void> {
    const { credits, db } = this.#any();
    const id = randomBytes(16).toString("hex");
    await credits.reservations.reserveWrite({ ...this.#spender(index, capped), submissionId: id, cents });
    if (!bind) return how === "release" ? credits.reservations.abandonWrite(id) : undefined;
    const bound = await db
      .transaction()
      .execute((trx) => credits.reservations.bindWrites([id], trx))
      .then(
        () => true,
        () => false,
      );
    if (!bound) return;
    if (how === "vanish") this.#open.push({ id, account: index, capped, mined: cents % 2 === 0 });
    else await this.#outcome({ id, account: index, capped, mined: how === "settle" });
  }

  async #outcome({
    id,
    account: index,
    capped,
    mined,
  }: {
    id: string;
    account: number;
    capped: boolean;
    mined: boolean;
  }): Promise<void> {
    const cents = await endWrite(this.#any(), id, mined);
    if (mined) this.#charge(index, capped, cents);
  }

  #spender(index: number, capped: boolean): { accountId: AccountId; keyId?: KeyId; capCents?: number } {
    const accountId = this.#accounts[index] as AccountId;
    return capped ? { accountId, keyId: this.#keys[index] as KeyId, capCents: CAP_CENTS } : { accountId };
  }

  #charge(index: number, capped: boolean, cents: number): void {
    this.#costs[index] = (this.#costs[index] ?? 0) + cents;
    if (capped) this.#keyCosts[index] = (this.#keyCosts[index] ?? 0) + cents;
  }

  async #onPayment(which: number, work: (payment: Payment) => Promise<unknown>): Promise<void> {
    const payment = this.#payments[which];
    if (payment !== undefined) await work(payment);
  }

  async #endDispute(intent: string, won: boolean): Promise<void> {
    const { data } = await this.#stripe.disputes.list({ payment_intent: intent });
    for (const { id } of data)
      await this.#stripe.disputes.update(id, {
        evidence: { uncategorized_text: won ? "winning_evidence" : "losing_evidence" },
      });
  }

  #events(): unknown[] {
    const ours = new Set(this.#payments.map(({ id }) => id));
    return [...this.#double.objects.events.values()].filter(({ data }) => {
      const { id, payment_intent: intent } = data.object as { id?: string; payment_intent?: string };
      return ours.has(id ?? "") || ours.has(intent ?? "");
    });
  }

  async #deliver(event: unknown): Promise<void> {
    if (event === undefined) return;
    const payload = JSON.stringify(event);
    await this.#any().credits.payments.handleWebhook(
      Buffer.from(payload),
      Stripe.webhooks.generateTestHeaderString({ payload, secret: WEBHOOK_SECRET }),
    );
  }

  /**
   * The process loses all its memory; another one takes over. Its open reservations stay until its lease has expired.
   */
  async #crash(index: number): Promise<void> {
    const fresh = await this.#instance();
    const dead = this.#instances[index] as CreditsBench;
    this.#instances[index] = fresh;
    this.#crashed.push(dead);
  }

  /**
   * All pending work ends: dead instances are taken over, open submissions get their outcome, every event is delivered,
   * some repeatedly.
   */
  async finish(): Promise<void> {
    const [survivor] = this.#instances as [CreditsBench];
    const gone = [...this.#crashed, ...this.#instances.slice(1)];
    for (const { instance } of gone) {
      await this.#db
        .updateTable("instances")
        .set({ renewed_at: sql`now() - interval '16 seconds'` })
        .where("id", "=", instance.id)
        .execute();
    }
    await Promise.all(this.#open.map((submission) => this.#outcome(submission)));
    const events = this.#events().reverse();
    await Promise.all([...events, ...events.slice(0, 5)].map((event) => this.#deliver(event)));
    await survivor.stop();
    const sweeper = await this.#instance();
    this.#instances = [sweeper];
    await reservationsOf(this.#db, sweeper.instance.id).sweep();
  }

  async check(): Promise<void> {
    const { credits, db } = this.#any();
    for (const [index, accountId] of this.#accounts.entries()) {
      const expected = START_CENTS - (this.#costs[index] ?? 0) + this.#paidIn(index);
      expect(await credits.accounts.balance(accountId)).to.deep.equal({ balanceCents: expected, reservedCents: 0 });
    }
    const spent = await credits.accounts.spentCents(this.#keys);
    expect([...spent.values()]).to.deep.equal(this.#keyCosts);
    expect(Math.max(...this.#keyCosts)).to.be.at.most(CAP_CENTS);
    await expectBalancedBooks(db);
    for (const { instance } of [...this.#instances, ...this.#crashed]) await instance.stop();
  }

  /** From the processor's own records: what was received, less what was refunded or is disputed. */
  #paidIn(index: number): number {
    const { charges, disputes } = this.#double.objects;
    return this.#payments
      .filter((payment) => payment.account === index)
      .reduce((sum, { id, cents }) => {
        const refunded = [...charges.values()].find((charge) => charge.payment_intent === id)?.amount_refunded ?? 0;
        const disputed = [...disputes.values()]
          .filter((one) => one.payment_intent === id && one.status !== "won")
          .reduce((total, one) => total + one.amount, 0);
        return sum + cents - Math.min(cents, refunded + disputed);
      }, 0);
  }
}
