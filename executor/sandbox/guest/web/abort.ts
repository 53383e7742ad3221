/** AbortController, AbortSignal and the subset of DOMException they need. */
import { Event, EventTarget, getEventAttributeValue, setEventAttributeValue } from "event-target-shim";

export class DOMException extends Error {
  constructor(message = "", name = "Error") {
    super(message);
    Object.defineProperty(this, "name", { value: name, configurable: true });
  }
}

type Handler = ((event: Event) => void) | null;
type Events = { abort: Event };

const settle = new WeakMap<AbortSignal, (reason: unknown) => void>();

export class AbortSignal extends EventTarget<Events> {
  #reason: unknown = undefined;
  #aborted = false;

  constructor() {
    super();
    settle.set(this, (reason) => this.#abort(reason));
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  get onabort(): Handler {
    return getEventAttributeValue<AbortSignal, Event>(this, "abort");
  }

  set onabort(handler: Handler) {
    setEventAttributeValue(this, "abort", handler);
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason;
  }

  #abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason === undefined ? new DOMException("The operation was aborted", "AbortError") : reason;
    this.dispatchEvent(new Event("abort"));
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
