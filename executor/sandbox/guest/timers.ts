/** Timers. The host measures the time; a run's timers end with it. */

type Callback = (...args: unknown[]) => void;
interface Timer {
  callback: Callback;
  args: unknown[];
  repeatMs?: number;
}

const MAX_TIMERS = 1_000;
const MAX_DELAY_MS = 2_147_483_647;

export function createTimers(hostTimer: (id: number, delayMs: number) => void) {
  const timers = new Map<number, Timer>();
  let next = 1;

  function start(kind: string, callback: unknown, delay: unknown, args: unknown[], repeats: boolean): number {
    if (typeof callback !== "function") throw new TypeError(`${kind} takes a function; text is not run`);
    if (timers.size >= MAX_TIMERS) throw new RangeError(`more than ${MAX_TIMERS} timers at once`);
    const number = Number(delay);
    // Also turns NaN into 1.
    const delayMs = number >= 1 ? Math.min(Math.floor(number), MAX_DELAY_MS) : 1;
    const id = next++;
    timers.set(id, { callback: callback as Callback, args, repeatMs: repeats ? delayMs : undefined });
    hostTimer(id, delayMs);
    return id;
  }

  function fire(id: number): void {
    const timer = timers.get(id);
    if (!timer) return;
    if (timer.repeatMs === undefined) timers.delete(id);
    else hostTimer(id, timer.repeatMs);
    timer.callback(...timer.args);
  }

  const clear = (id: unknown): void => void timers.delete(Number(id));
  return {
    fire,
    globals: {
      setTimeout: (callback: unknown, delay?: unknown, ...args: unknown[]) =>
        start("setTimeout", callback, delay, args, false),
      setInterval: (callback: unknown, delay?: unknown, ...args: unknown[]) =>
        start("setInterval", callback, delay, args, true),
      clearTimeout: clear,
      clearInterval: clear,
      queueMicrotask: (callback: unknown) => {
        if (typeof callback !== "function") throw new TypeError("queueMicrotask takes a function");
        void Promise.resolve().then(callback as () => void);
      },
    },
  };
}
