/** Faults that a test may inject, and where in a request they occur. */
export const FAULT_KINDS = ["error_before", "error_after", "lost_before", "lost_after"] as const;

/**
 * `error_…`: a 500 answer; `lost_…`: the connection breaks without an answer. `…_before`: without effect; `…_after`:
 * the request took effect.
 */
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** Affects requests whose `METHOD path` contains this text; empty = all. */
  readonly where: string;
  /** How many requests it affects. */
  readonly times: number;
}

export class Faults {
  #planned: Fault[] = [];
  /** Share of requests that get a random fault, besides the planned ones. */
  rate = 0;

  plan(fault: Fault): void {
    this.#planned.push(fault);
  }

  clear(): void {
    this.#planned = [];
    this.rate = 0;
  }

  /** Returns this request's fault and consumes one occurrence. */
  strike(method: string, path: string): FaultKind | undefined {
    const at = this.#planned.findIndex(({ where }) => `${method} ${path}`.includes(where));
    const fault = this.#planned[at];
    if (fault === undefined)
      return Math.random() < this.rate ? FAULT_KINDS[Math.floor(Math.random() * FAULT_KINDS.length)] : undefined;
    this.#planned.splice(at, 1, ...(fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : []));
    return fault.kind;
  }
}
