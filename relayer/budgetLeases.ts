/**
 * Sends the leases of budgets that runs wait for. The keyholder asks, since it decides what is spent; the account of
 * the run pays for each as for a write. Without credit there is no lease, and so no signature. They take the account's
 * turn like its owner's writes do, so there is one at a time: a key that may do nothing but run must not fill the queue
 * in which the owner's revocation waits.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { encodeBytes32String } from "ethers";
import { WINDOWS } from "../protocol/budgetTerms";
import { defined } from "../protocol/defined";
import { KeywrightError } from "../protocol/errors";
import type { ExecutorAnswer, ExecutorRequest } from "../protocol/executor";
import type { AccountId, ActionHash, Cid, Hash32, KeyId } from "../protocol/ids";
import type { Prices } from "../protocol/limits";
import type { Logger } from "../protocol/log";
import type { Chain, SubmitRequest } from "./chain/types";
import type { Credits } from "./credits";
import type { Executor } from "./executor/client";
import type { BudgetStore } from "./store/budgets";

export interface BudgetLeaseParts {
  readonly chain: Pick<Chain, "submit">;
  readonly credits: Credits;
  readonly executor: Pick<Executor, "call">;
  readonly budgets: Pick<BudgetStore, "note">;
  readonly prices: Prices;
  readonly log: Logger;
}

type Lease = ExecutorAnswer<"nextLeases">["leases"][number];
type Refusal = NonNullable<ExecutorRequest<"leaseOutcome">["failed"]>;

const AFTER_FAILURE_MS = 1_000;
/** Writes that are under way are taken up by another relayer, or after the next start. */
const MAX_STOP_MS = 2_000;
/** Leases of one account that wait or are under way. */
const MOST_EACH = 64;
/** As long as a write waits for its turn. What comes later would be paid for when its run has given up. */
const MAX_WAIT_MS = 30_000;
const QUEUE_FULL = {
  code: "queue_full",
  detail: "Too many leases of this account's budgets wait; nothing was charged.",
};
const TOO_LATE = {
  code: "timed_out",
  detail: "Earlier leases of this account's budgets took too long; nothing was charged.",
};

interface Waiting {
  readonly lease: Lease;
  /** In milliseconds of `performance.now()`. */
  readonly until: number;
}

export class BudgetLeases {
  readonly #parts: BudgetLeaseParts;
  readonly #stopped = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  /** What waits or is under way, by account and id. */
  readonly #waiting = new Map<string, Map<string, Waiting>>();
  #loop: Promise<void> = Promise.resolve();

  readonly #maxWaitMs: number;

  constructor(parts: BudgetLeaseParts, maxWaitMs = MAX_WAIT_MS) {
    this.#parts = parts;
    this.#maxWaitMs = maxWaitMs;
  }

  start(): void {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    const ended = Promise.allSettled([this.#loop, ...this.#underWay]);
    await Promise.race([ended, sleep(MAX_STOP_MS, undefined, { ref: false })]);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      try {
        const { leases } = await this.#parts.executor.call("nextLeases", {}, { signal });
        for (const lease of leases) this.#begin(lease);
      } catch {
        // The executor is starting, stopping or gone: /ready says so.
        await sleep(AFTER_FAILURE_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  #begin(lease: Lease): void {
    const others = this.#waiting.get(lease.accountId);
    // The keyholder hands one out again that takes long.
    if (others?.has(lease.id) === true) return;
    const waiting = { lease, until: performance.now() + this.#maxWaitMs };
    if (others === undefined) {
      const leases = new Map([[lease.id, waiting]]);
      this.#waiting.set(lease.accountId, leases);
      this.#keep(this.#sendAll(lease.accountId, leases));
    } else if (others.size < MOST_EACH) others.set(lease.id, waiting);
    else this.#keep(this.#tell(lease, QUEUE_FULL));
  }

  #keep(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  /** Those that come meanwhile included. */
  async #sendAll(accountId: string, leases: Map<string, Waiting>): Promise<void> {
    for (const [id, { lease, until }] of leases) {
      if (this.#stopped.signal.aborted) break;
      await (performance.now() < until ? this.#send(lease) : this.#tell(lease, TOO_LATE));
      leases.delete(id);
    }
    this.#waiting.delete(accountId);
  }

  async #send(lease: Lease): Promise<void> {
    if (this.#parts.prices.managementWriteCents === 0) await this.#note(lease);
    const submit = async (): Promise<unknown> => this.#parts.chain.submit(this.#requestOf(lease));
    await this.#tell(lease, await submit().then(() => undefined, refusalOf));
  }

  async #tell({ id, accountId: account }: Lease, failed: Refusal | undefined): Promise<void> {
    await this.#parts.executor
      .call("leaseOutcome", { id, ...defined({ failed }) })
      .catch((err: unknown) => this.#parts.log.warn({ err, account }, "what became of a budget's lease is not told"));
  }

  /**
   * Before it is sent: the run goes on once the keyholder sees it on the chain, and whoever asks after that finds its
   * budget. Only once it is paid for, or others' could fill the list.
   */
  async #note(lease: Lease): Promise<void> {
    const budget = {
      account: lease.accountId as AccountId,
      action: lease.actionHash as ActionHash,
      cid: lease.cid as Cid,
      name: lease.name,
      window: lease.window,
      lastLimit: BigInt(lease.limit),
    };
    await this.#parts.budgets
      .note(budget)
      .catch((error: unknown) => this.#parts.log.warn({ err: error }, "a budget could not be noted for its list"));
  }

  /** Sent once, however often it is asked for: its name is its idempotency key. */
  #requestOf(lease: Lease): SubmitRequest {
    const { id, accountId, actionHash, name, window, amount, limit, ...payer } = lease;
    const { credits, prices } = this.#parts;
    const args = [accountId, actionHash, encodeBytes32String(name), String(WINDOWS.indexOf(window)), amount, limit, id];
    const spender = {
      accountId: accountId as AccountId,
      ...(payer.isAccountKey ? {} : { keyId: payer.keyId as KeyId }),
      ...(payer.capCents === "0" ? {} : { capCents: Number(payer.capCents) }),
    };
    const cents = prices.managementWriteCents;
    return {
      accountId: accountId as AccountId,
      kind: "lease_budget",
      credential: { type: "lease", id: id as Hash32 },
      write: { functionName: "lease", args },
      idempotencyKey: `lease:${id}`,
      ...(cents === 0
        ? {}
        : {
            reserve: async (submissionId) => {
              const isHeld = await credits.reservations.reserveWrite({ ...spender, cents, submissionId });
              await this.#note(lease);
              return isHeld;
            },
          }),
    };
  }
}

/** Undefined while it may still be carried out: the keyholder looks for itself. */
function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof KeywrightError)) return { code: "internal_error", detail: "The lease could not be sent." };
  return error.code === "submission_pending" ? undefined : { code: error.code, detail: error.detail };
}
