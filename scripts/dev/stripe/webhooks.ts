/**
 * Signed webhooks, delivered at least once: deliveries not answered with 2xx are retried with growing delays. Order is
 * not guaranteed; a test may set duplicates, losses, delay and disorder.
 */
import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import Stripe from "stripe";
import type { Event } from "./objects";

export interface WebhookOptions {
  readonly url: string | undefined;
  readonly secret: string;
  /** Delays between attempts. */
  readonly retryDelaysMs: readonly number[];
}

/** Behaviour of the next deliveries; a test may change it at run time. */
export interface WebhookBehaviour {
  /** How many times each event is sent, even if answered. */
  copies: number;
  /** Share of events never sent (reconciliation must find them). */
  lossRate: number;
  /** Each delivery waits a random time up to this, so that later events may overtake earlier ones. */
  disorderMs: number;
}

const ANSWER_TIMEOUT_MS = 10_000;

export class Webhooks {
  readonly behaviour: WebhookBehaviour = { copies: 1, lossRate: 0, disorderMs: 0 };
  readonly #stopped = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  readonly #options: WebhookOptions;

  constructor(options: WebhookOptions) {
    this.#options = options;
    setMaxListeners(0, this.#stopped.signal);
  }

  send(event: Event): void {
    if (this.#options.url === undefined || Math.random() < this.behaviour.lossRate) return;
    const payload = JSON.stringify(event, undefined, 2);
    for (let copy = 0; copy < this.behaviour.copies; copy++) this.#track(this.#deliver(this.#options.url, payload));
  }

  #track(delivery: Promise<void>): void {
    this.#underWay.add(delivery);
    void delivery.finally(() => this.#underWay.delete(delivery));
  }

  async #deliver(url: string, payload: string): Promise<void> {
    await this.#pause(Math.random() * this.behaviour.disorderMs);
    for (const delayMs of [...this.#options.retryDelaysMs, undefined]) {
      if (this.#stopped.signal.aborted || (await this.#accepted(url, payload))) return;
      if (delayMs !== undefined) await this.#pause(delayMs);
    }
  }

  async #accepted(url: string, payload: string): Promise<boolean> {
    const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret: this.#options.secret });
    const headers = { "content-type": "application/json; charset=utf-8", "stripe-signature": signature };
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
    try {
      const answer = await fetch(url, { method: "POST", headers, body: payload, signal });
      await answer.arrayBuffer();
      return answer.ok;
    } catch {
      return false;
    }
  }

  /** Ends early when the double stops. */
  #pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
  }

  /** Resolves when every event sent so far is answered or given up. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.idle();
  }
}
