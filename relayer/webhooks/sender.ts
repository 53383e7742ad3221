/**
 * Sends what is due. Attempts share the places of this process fairly between accounts, a few for each webhook; a
 * receiver that keeps failing gets one attempt at a time. So a slow or hostile receiver delays no other one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { FairShare, inScope, Preempted } from "../../protocol/fairShare";
import { SHARED_LIMITS, WEBHOOK_LIMITS } from "../../protocol/limits";
import { PeriodicTask } from "../periodicTask";
import type { Executor } from "../executor/client";
import type { Db } from "../store/database";
import {
  claim,
  dueWebhooks,
  finish,
  isDelivered,
  putBack,
  type Attempt,
  type Claimed,
  type DueWebhook,
} from "./deliveries";

/** Unsent: this service could not make the attempt. */
export type AttemptOutcome = "delivered" | "failed" | "unsent";

export interface SenderOptions {
  readonly db: Db;
  readonly executor: Pick<Executor, "call">;
  readonly onAttempt: (outcome: AttemptOutcome) => void;
  readonly onError: (error: unknown) => void;
  /** Attempts that wait or are under way, of all accounts; one of each account that has no other is always let in. */
  readonly mostLanes?: number;
}

const EVERY_MS = 1_000;
/** Below the lease of a delivery, above the executor's time-out. */
const CALL_MS = WEBHOOK_LIMITS.timeoutMs + 5_000;
const MAX_LANES = 1_024;
/** From so many failures in a row, a webhook has one attempt at a time, with a pause. */
const FAILING_FROM = 5;
const STOP_MS = 2_000;

interface Lanes {
  open: number;
  failures: number;
}

export class Sender {
  readonly #places = new FairShare({ total: WEBHOOK_LIMITS.underWay, patienceMs: SHARED_LIMITS.patienceMs });
  readonly #webhooks = new Map<string, Lanes>();
  /** Lanes by account. */
  readonly #byAccount = new Map<string, number>();
  readonly #stopping = new AbortController();
  readonly #turns: PeriodicTask;
  readonly #options: SenderOptions;
  #lanes = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#turns = new PeriodicTask(() => this.#turn(), EVERY_MS, options.onError);
  }

  start(): void {
    this.#turns.start();
  }

  /** Ends attempts under way: whoever comes next repeats them. */
  async stop(): Promise<void> {
    await this.#turns.stop();
    this.#stopping.abort(new Error("the relayer stops"));
    for (const until = Date.now() + STOP_MS; this.#lanes > 0 && Date.now() < until;) await sleep(20);
  }

  async #turn(): Promise<void> {
    const due = await dueWebhooks(this.#options.db);
    const isDue = new Set(due.map(({ webhookId }) => webhookId));
    for (const [id, { open }] of this.#webhooks) if (open === 0 && !isDue.has(id)) this.#webhooks.delete(id);
    for (const webhook of due) if (this.#lanesOf(webhook).open === 0) this.#open(webhook);
  }

  #lanesOf({ webhookId }: DueWebhook): Lanes {
    const known = this.#webhooks.get(webhookId) ?? { open: 0, failures: 0 };
    this.#webhooks.set(webhookId, known);
    return known;
  }

  #open(webhook: DueWebhook): void {
    const lanes = this.#lanesOf(webhook);
    const most = lanes.failures >= FAILING_FROM ? 1 : WEBHOOK_LIMITS.underWayEach;
    const { mostLanes = MAX_LANES } = this.#options;
    const isFull = this.#lanes >= mostLanes && this.#byAccount.has(webhook.accountId);
    if (lanes.open >= most || isFull || this.#stopping.signal.aborted) return;
    this.#count(webhook, lanes, 1);
    void this.#lane(webhook, lanes)
      .catch((error: unknown) => this.#stopping.signal.aborted || this.#options.onError(error))
      .finally(() => this.#count(webhook, lanes, -1));
  }

  #count({ accountId }: DueWebhook, lanes: Lanes, change: 1 | -1): void {
    lanes.open += change;
    this.#lanes += change;
    const own = (this.#byAccount.get(accountId) ?? 0) + change;
    if (own === 0) this.#byAccount.delete(accountId);
    else this.#byAccount.set(accountId, own);
  }

  /** One attempt after the other, until nothing is due; each opens a further lane, as long as more is due. */
  async #lane(webhook: DueWebhook, lanes: Lanes): Promise<void> {
    for (;;) {
      const isMore = await inScope(webhook.accountId, this.#stopping.signal, async (scope) => {
        await scope.take(this.#places);
        const since = performance.now();
        const [claimed] = await claim(this.#options.db, webhook.webhookId);
        if (claimed === undefined) return false;
        this.#open(webhook);
        const isDelivered = await this.#attempt(claimed, scope.over);
        // Slow, while others waited: not to blame for it, but no crowd of such receivers has several attempts each.
        const isSlow = scope.over.reason instanceof Preempted && performance.now() - since >= SHARED_LIMITS.patienceMs;
        if (isDelivered === undefined && isSlow) lanes.failures += 1;
        // It would find the same for all that is due, one after the other: the next turn tries again.
        if (isDelivered === undefined) return false;
        lanes.failures = isDelivered ? 0 : lanes.failures + 1;
        return true;
      });
      if (!isMore || lanes.failures >= FAILING_FROM) return;
    }
  }

  /** Undefined when nothing is known of the receiver. */
  async #attempt(claimed: Claimed, over: AbortSignal): Promise<boolean | undefined> {
    const { db, onAttempt } = this.#options;
    const attempt = await this.#send(claimed, over);
    if (attempt === undefined) {
      await putBack(db, claimed);
      return undefined;
    }
    await finish(db, claimed, attempt);
    onAttempt(isDelivered(attempt) ? "delivered" : "failed");
    return isDelivered(attempt);
  }

  /** Undefined when the receiver is not to blame: this process stops, others need the place, the executor is away. */
  async #send({ url, message }: Claimed, over: AbortSignal): Promise<Attempt | undefined> {
    const signal = AbortSignal.any([over, AbortSignal.timeout(CALL_MS)]);
    const call = this.#options.executor.call("sendWebhook", { url: url ?? "", message }, { signal });
    return call.catch((error: unknown) => {
      if (over.aborted) return undefined;
      this.#options.onAttempt("unsent");
      this.#options.onError(error);
      return undefined;
    });
  }
}
