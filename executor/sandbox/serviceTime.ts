/**
 * How long a run waited for the service: for a core, for an op, for its permission, for its share of what fetches need.
 * It is not billed, so that a run costs the same on a busy machine. What it computes meanwhile is billed, as is all
 * waiting for the outside and for its account's own uses.
 */
import type { FairShare, Grant, Scope } from "../../protocol/fairShare";
import { AWAKE_MS } from "../awake";
import type { Scheduled } from "./memory";

export class ServiceTime {
  readonly #scheduled: () => Scheduled;
  readonly #atStart: Scheduled;
  #open = 0;
  /** How much is on its way outside: meanwhile no wait for the service counts. */
  #outside = 0;
  /** How long the child was active is not known before the end of the loop's turn in which the wait began. */
  #since: { readonly ms: number; readonly activeMs?: number } = { ms: 0 };
  #asking: NodeJS.Immediate | undefined;
  #idleMs = 0;

  /** `scheduled` is what the kernel says of the child. */
  constructor(scheduled: () => Scheduled) {
    this.#scheduled = scheduled;
    this.#atStart = scheduled();
  }

  /** The run waits until the returned function is called; waits that overlap count once. */
  begin(): () => void {
    if (this.#open++ === 0 && this.#outside === 0) this.#start();
    return once(() => {
      if (--this.#open === 0 && this.#outside === 0) this.#close();
    });
  }

  /** The run waits for the outside until the returned function is called: billed, whatever else it waits for. */
  outside(): () => void {
    if (this.#outside++ === 0 && this.#open > 0) this.#close();
    return once(() => {
      if (--this.#outside === 0 && this.#open > 0) this.#start();
    });
  }

  /** The run waits for the service, not for the outside, until `granted` is settled. */
  async unbilled<T>(granted: Promise<T> | undefined): Promise<T | undefined> {
    return Promise.resolve(granted).finally(this.begin());
  }

  /** Takes of a share. To wait for others' uses of it is not billed, to wait for the account's own is. */
  take(share: FairShare, amount: number, scope: Scope, account: string): Promise<Grant> {
    const isOwnDoing = share.hasItsPart(account, amount);
    const taken = scope.take(share, amount);
    return isOwnDoing ? taken : taken.finally(this.begin());
  }

  /** In milliseconds. Waits that are not over end now. */
  total(): number {
    if (this.#open > 0 && this.#outside === 0) this.#close();
    return this.#idleMs + this.#scheduled().waitedMs - this.#atStart.waitedMs;
  }

  /** Most waits end within the turn: to ask the kernel would take longer than they do. */
  #start(): void {
    this.#since = { ms: performance.now() };
    this.#asking ??= setImmediate(() => {
      this.#asking = undefined;
      if (this.#open > 0 && this.#outside === 0) this.#close();
    });
  }

  /** Counts the wait so far. */
  #close(): void {
    const { ms: sinceMs, activeMs: activeBefore } = this.#since;
    const isWithinTurn = activeBefore === undefined && this.#open === 0;
    const { ranMs, waitedMs } = isWithinTurn ? { ranMs: 0, waitedMs: 0 } : this.#scheduled();
    const [ms, activeMs] = [performance.now(), ranMs + waitedMs];
    const computedMs = activeBefore === undefined ? 0 : Math.max(0, activeMs - activeBefore - AWAKE_MS);
    this.#idleMs += Math.max(0, ms - sinceMs - computedMs);
    this.#since = { ms, activeMs };
  }
}

function once(end: () => void): () => void {
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    end();
  };
}
