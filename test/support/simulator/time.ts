/**
 * Simulated time: replaces the timers and clocks of this process, also those of the embedded database, which asks
 * `Date.now`. Time passes only when nothing is left to do at the present instant, so a history takes no longer than its
 * work.
 */
import { performance } from "node:perf_hooks";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly fire: () => void;
}

const REAL = {
  ...{ setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate, Date },
  now: performance.now.bind(performance),
  eventLoopUtilization: performance.eventLoopUtilization.bind(performance),
};
/** What histories do without: Kysely freezes each part of each query. */
const { freeze } = Object;
/** In the past: an embedded database outside the simulation that sets a timer by this clock finds it due afterwards. */
const START = Date.UTC(2024, 0, 1);
const MAX_TURNS = 20_000;

class Handle {
  constructor(readonly id: number) {}
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
}

export class SimulatedTime {
  /** Statements that the store has not answered yet. */
  atWork = 0;
  #now = START;
  #order = 0;
  #activity = 0;
  /** The next first. */
  readonly #timers: Timer[] = [];
  /** What is done once all that follows from the present work is done. */
  readonly #immediates = new Map<number, () => void>();
  readonly #turnsOfStatement: number;

  /** @param turnsOfStatement turns of the event loop that a statement takes; one more shows that nothing followed */
  constructor(turnsOfStatement = 1) {
    this.#turnsOfStatement = turnsOfStatement;
  }

  get now(): number {
    return this.#now;
  }

  /** Something was asked or answered: the instant is not over. */
  note(): void {
    this.#activity += 1;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#set(resolve, ms));
  }

  /** Calls `work` with this clock in place of the real one. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    const set = (fire: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): Handle =>
      this.#set(() => fire(...args), ms);
    const repeat = (fire: () => void, ms: number): Handle => this.#every(fire, ms);
    const clear = (handle: unknown): void => void (handle instanceof Handle && this.#clear(handle.id));
    const soon = (fire: (...args: unknown[]) => void, ...args: unknown[]): Handle => this.#soon(() => fire(...args));
    const clearSoon = (handle: unknown): void => void (handle instanceof Handle && this.#immediates.delete(handle.id));
    const now = (): number => this.#now;
    const SimulatedDate = class extends REAL.Date {
      constructor(at: number | string = now()) {
        super(at);
      }
      static override now(): number {
        return now();
      }
    };
    const replaced = { setTimeout: set, clearTimeout: clear, setInterval: repeat, clearInterval: clear };
    Object.assign(globalThis, replaced, { Date: SimulatedDate, setImmediate: soon, clearImmediate: clearSoon });
    Object.freeze = <T>(value: T): T => value;
    performance.now = now;
    // Whatever is done takes no simulated time.
    performance.eventLoopUtilization = () => ({ idle: 0, active: 0, utilization: 0 });
    try {
      return await work();
    } finally {
      const { now: realNow, eventLoopUtilization, ...globals } = REAL;
      Object.assign(globalThis, globals);
      Object.freeze = freeze;
      Object.assign(performance, { now: realNow, eventLoopUtilization });
    }
  }

  /** Lets time pass, until `done` holds at the end of an instant, or for `ms`. True if it was done. */
  async pass(ms: number, done: () => boolean = () => false): Promise<boolean> {
    const end = this.#now + ms;
    await this.#settle();
    while (!done()) {
      const [next] = this.#timers;
      if (next === undefined || next.at > end) {
        this.#now = end;
        return false;
      }
      this.#timers.shift();
      this.#now = Math.max(this.#now, next.at);
      next.fire();
      await this.#settle();
    }
    return true;
  }

  /** The clock moves, as on a machine that was suspended: timers that are due by then fire late. */
  jump(ms: number): void {
    this.#now += ms;
  }

  /** In whole milliseconds, as those of Node. */
  #set(fire: () => void, ms: number): Handle {
    const order = ++this.#order;
    this.note();
    this.#add({ at: this.#now + Math.max(0, Math.trunc(ms)), order, fire });
    return new Handle(order);
  }

  /** Most are set for later than those that wait. */
  #add(timer: Timer): void {
    let place = this.#timers.length;
    for (; place > 0; place--) {
      const { at, order } = this.#timers[place - 1] as Timer;
      if (at < timer.at || (at === timer.at && order < timer.order)) break;
    }
    this.#timers.splice(place, 0, timer);
  }

  #clear(order: number): void {
    const place = this.#timers.findIndex((timer) => timer.order === order);
    if (place >= 0) this.#timers.splice(place, 1);
  }

  #every(fire: () => void, ms: number): Handle {
    const handle = this.#set(() => again(), ms);
    const again = (): void => {
      this.#add({ at: this.#now + Math.trunc(ms), order: handle.id, fire: again });
      fire();
    };
    return handle;
  }

  #soon(fire: () => void): Handle {
    const order = ++this.#order;
    this.#immediates.set(order, fire);
    return new Handle(order);
  }

  #fireImmediates(): void {
    const due = [...this.#immediates.values()];
    this.#immediates.clear();
    if (due.length > 0) this.note();
    for (const fire of due) fire();
  }

  async #settle(): Promise<void> {
    // A store in memory answers at once: once no promise waits to be continued, nothing can follow.
    const turn = this.#turnsOfStatement === 0 ? continuations : turnOfEventLoop;
    for (let quiet = 0, turns = 0; quiet <= this.#turnsOfStatement; turns++) {
      if (turns > MAX_TURNS) throw new Error("the relayers go on and on without letting time pass");
      const seen = this.#activity;
      await turn();
      this.#fireImmediates();
      quiet = seen === this.#activity && this.atWork === 0 ? quiet + 1 : 0;
    }
  }
}

/** Resolves once every promise that can be continued has been. */
const continuations = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

const turnOfEventLoop = (): Promise<void> => new Promise((resolve) => REAL.setImmediate(resolve));
