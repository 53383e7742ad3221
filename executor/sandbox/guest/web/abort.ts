/** AbortController, AbortSignal and the one kind of DOMException they need. */

export class DOMException extends Error {
  constructor(message = "", name = "Error") {
    super(message);
    Object.defineProperty(this, "name", { value: name, configurable: true });
  }
}

type Listener = ((event: AbortEvent) => void) | { handleEvent(event: AbortEvent): void };
interface AbortEvent {
  type: "abort";
  target: AbortSignal;
}

const settle = new WeakMap<AbortSignal, (reason: unknown) => void>();

export class AbortSignal {
  #reason: unknown = undefined;
  #aborted = false;
  readonly #listeners = new Map<Listener, { once: boolean }>();
  onabort: ((event: AbortEvent) => void) | null = null;

  constructor() {
    settle.set(this, (reason) => this.#abort(reason));
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }

  addEventListener(type: string, listener: Listener, options?: boolean | { once?: boolean }): void {
    if (type === "abort" && listener) this.#listeners.set(listener, { once: typeof options === "object" && options.once === true });
  }

  removeEventListener(_type: string, listener: Listener): void {
    this.#listeners.delete(listener);
  }

  dispatchEvent(event: AbortEvent): boolean {
    this.onabort?.(event);
    for (const [listener, { once }] of [...this.#listeners]) {
      if (once) this.#listeners.delete(listener);
      if (typeof listener === "function") listener.call(this, event);
      else listener.handleEvent(event);
    }
    return true;
  }

  #abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason ?? new DOMException("The operation was aborted", "AbortError");
    this.dispatchEvent({ type: "abort", target: this });
  }

  static abort(reason?: unknown): AbortSignal {
    const signal = new AbortSignal();
    settle.get(signal)?.(reason);
    return signal;
  }

  static timeout(milliseconds: number): AbortSignal {
    const signal = new AbortSignal();
    setTimeout(() => settle.get(signal)?.(new DOMException("The operation timed out", "TimeoutError")), milliseconds);
    return signal;
  }

  static any(signals: Iterable<AbortSignal>): AbortSignal {
    const combined = new AbortSignal();
    for (const signal of signals) {
      if (signal.aborted) return AbortSignal.abort(signal.reason);
      signal.addEventListener("abort", () => settle.get(combined)?.(signal.reason), { once: true });
    }
    return combined;
  }
}

export class AbortController {
  readonly signal = new AbortSignal();

  abort(reason?: unknown): void {
    settle.get(this.signal)?.(reason);
  }
}
