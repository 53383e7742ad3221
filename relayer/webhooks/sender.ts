/**
 * Sends what is due. Attempts share the places of this process fairly between accounts, a few for each webhook; a
 * receiver that keeps failing gets one attempt at a time. So a slow or hostile receiver delays no other one.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { FairShare, inScope } from "../../protocol/fairShare";
import { SHARED_LIMITS, WEBHOOK_LIMITS } from "../../protocol/limits";
import { Repeating } from "../background";
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

export interface SenderOptions {
  readonly db: Db;
  readonly executor: Pick<Executor, "call">;
  readonly onAttempt: (isDelivered: boolean) => void;
  readonly onError: (error: unknown) => void;
}

const EVERY_MS = 1_000;
/** Below the lease of a delivery, above the executor's time-out. */
const CALL_MS = WEBHOOK_LIMITS.timeoutMs + 5_000;
const MOST_LANES = 1_024;
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
  readonly #stopping = new AbortController();
  readonly #turns: Repeating;
  readonly #options: SenderOptions;
  #lanes = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
    this.#turns = new Repeating(() => this.#turn(), EVERY_MS, options.onError);
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
    if (lanes.open >= most || this.#lanes >= MOST_LANES || this.#stopping.signal.aborted) return;
    lanes.open++;
    this.#lanes++;
    void this.#lane(webhook, lanes)
      .catch((error: unknown) => this.#stopping.signal.aborted || this.#options.onError(error))
      .finally(() => (lanes.open--, this.#lanes--));
  }

  /** One attempt after the other, until nothing is due; each opens a further lane, as long as more is due. */
  async #lane(webhook: DueWebhook, lanes: Lanes): Promise<void> {
    for (;;) {
      const isMore = await inScope(webhook.accountId, this.#stopping.signal, async (scope) => {
        await scope.take(this.#places);
        const [claimed] = await claim(this.#options.db, webhook.webhookId);
        if (claimed === undefined) return false;
        this.#open(webhook);
        lanes.failures = (await this.#attempt(claimed, scope.over)) ? 0 : lanes.failures + 1;
        return true;
      });
      if (!isMore || lanes.failures >= FAILING_FROM) return;
    }
  }

  /** False when the receiver failed. */
  async #attempt(claimed: Claimed, over: AbortSignal): Promise<boolean> {
    const { db, onAttempt } = this.#options;
    const attempt = await this.#send(claimed, over);
    if (attempt === undefined) {
      await putBack(db, claimed);
      return true;
    }
    await finish(db, claimed, attempt);
    onAttempt(isDelivered(attempt));
    return isDelivered(attempt);
  }

  /** Undefined when the receiver is not to blame: this process stops, others need the place, the executor is away. */
  async #send({ url, message }: Claimed, over: AbortSignal): Promise<Attempt | undefined> {
    const signal = AbortSignal.any([over, AbortSignal.timeout(CALL_MS)]);
    const call = this.#options.executor.call("sendWebhook", { url: url ?? "", message }, { signal });
    return call.catch((error: unknown) => {
      if (!over.aborted) this.#options.onError(error);
      return undefined;
    });
  }
}
