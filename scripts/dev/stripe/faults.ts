/** Troubles a test may order, and where in a request they strike. */
export const FAULT_KINDS = ["error_before", "error_after", "lost_before", "lost_after"] as const;

/** `error_…`: a 500 answer; `lost_…`: the connection breaks without an answer. `…_before`: nothing has happened; `…_after`: the effect stands. */
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** Requests it strikes: those whose `METHOD path` contains this text; empty = all. */
  readonly where: string;
  /** How many requests it strikes. */
  readonly times: number;
}

export class Faults {
  #planned: Fault[] = [];
  /** Share of requests struck by a fault drawn at random, beside the planned ones. */
  rate = 0;

  plan(fault: Fault): void {
    this.#planned.push(fault);
  }

  clear(): void {
    this.#planned = [];
    this.rate = 0;
  }

  /** The fault this request meets, which is thereby used up once. */
  strike(method: string, path: string): FaultKind | undefined {
    const at = this.#planned.findIndex(({ where }) => `${method} ${path}`.includes(where));
    const fault = this.#planned[at];
    if (fault === undefined) return Math.random() < this.rate ? FAULT_KINDS[Math.floor(Math.random() * FAULT_KINDS.length)] : undefined;
    this.#planned.splice(at, 1, ...(fault.times > 1 ? [{ ...fault, times: fault.times - 1 }] : []));
    return fault.kind;
  }
}
