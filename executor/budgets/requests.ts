/**
 * Leases that the relayer is asked to send. It asks for them with a call that waits, and says what became of each; what
 * it says is advice. As payer the keyholder signs only leases of its own making.
 */
import { LRUCache } from "lru-cache";
import { KeywrightError, isErrorCode } from "../../protocol/errors";
import { encodeLease, type LeaseTerms } from "../../protocol/budgets";
import type { ExecutorAnswer, ExecutorRequest } from "../../protocol/executor";
import type { Hash32 } from "../../protocol/ids";
import type { Carrier, Payer } from "./counter";

/** How long the relayer's call waits for a lease; well below its time-out. */
const POLL_MS = 15_000;
/** Handed out and without an outcome for this long, a lease is handed out again: its relayer may have died. */
const HANDED_OUT_MS = 20_000;
const KEPT_MS = 10 * 60_000;
const MOST = 10_000;

interface Request {
  readonly terms: LeaseTerms;
  readonly payer: Payer;
  handedOutAt: number;
  readonly settle: { resolve(): void; reject(error: Error): void }[];
}

export class LeaseRequests implements Carrier {
  readonly #requests = new LRUCache<Hash32, Request>({ max: MOST, ttl: KEPT_MS });
  #polls = new Set<() => void>();
  #isStopped = false;

  send(terms: LeaseTerms, payer: Payer): Promise<void> {
    const known = this.#requests.get(terms.id);
    const request = known ?? { terms, payer, handedOutAt: -Infinity, settle: [] };
    if (known?.settle.length === 0) request.handedOutAt = -Infinity;
    this.#requests.set(terms.id, request);
    return new Promise((resolve, reject) => {
      request.settle.push({ resolve, reject });
      for (const wake of this.#polls) wake();
    });
  }

  /** The leases to send now; waits for one. */
  async next(signal: AbortSignal): Promise<ExecutorAnswer<"nextLeases">> {
    const leases = this.#handOut();
    if (leases.length > 0 || this.#isStopped || signal.aborted) return { leases };
    await this.#untilWoken(signal);
    return { leases: signal.aborted ? [] : this.#handOut() };
  }

  /** @param failed why the lease was not sent. */
  outcome({ id, failed }: ExecutorRequest<"leaseOutcome">): ExecutorAnswer<"leaseOutcome"> {
    const request = this.#requests.get(id as Hash32);
    if (request === undefined) return {};
    const error =
      failed && new KeywrightError(isErrorCode(failed.code) ? failed.code : "internal_error", failed.detail);
    // One that was not paid for is not kept, nor signed.
    if (error !== undefined) this.#requests.delete(id as Hash32);
    for (const { resolve, reject } of request.settle.splice(0)) {
      if (error === undefined) resolve();
      else reject(error);
    }
    return {};
  }

  /** The calldata of a lease that this keyholder asked for. @throws KeywrightError `not_authorized`. */
  calldata(id: string): string {
    const request = this.#requests.get(id as Hash32);
    if (request !== undefined) return encodeLease(request.terms);
    throw new KeywrightError("not_authorized", "This keyholder has not asked for a lease of this name.");
  }

  /** Ends the calls that wait. */
  stop(): void {
    this.#isStopped = true;
    for (const wake of this.#polls) wake();
  }

  #handOut(): ExecutorAnswer<"nextLeases">["leases"] {
    const now = performance.now();
    const open = [...this.#requests.values()].filter(
      ({ settle, handedOutAt }) => settle.length > 0 && now - handedOutAt > HANDED_OUT_MS,
    );
    return open.map((request) => {
      request.handedOutAt = now;
      const { terms, payer } = request;
      const { account, action, name, window } = terms.budget;
      return {
        id: terms.id,
        accountId: account,
        actionHash: action,
        cid: payer.cid,
        name,
        window,
        amount: String(terms.amount),
        limit: String(terms.limit),
        keyId: payer.keyId,
        isAccountKey: payer.isAccountKey,
        capCents: String(payer.capCents),
      };
    });
  }

  #untilWoken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#polls.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const timer = setTimeout(wake, POLL_MS);
      this.#polls.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}
