import { inspector } from "./web/globals";

/** `console`: each call is one line of the run's logs. Strings unchanged, everything else formatted. */
export function createConsole(log: (text: string) => void): object {
  const counts = new Map<string, number>();
  const line = (...values: unknown[]): void => log(`${values.map(show).join(" ")}\n`);
  const count = (label: unknown = "default"): void => {
    const total = (counts.get(String(label)) ?? 0) + 1;
    counts.set(String(label), total);
    line(`${String(label)}: ${total}`);
  };
  const { now } = Date;
  const starts = new Map<string, number>();
  const timeLog = (label: unknown = "default", ...values: unknown[]): void => {
    const start = starts.get(String(label));
    if (start === undefined) line(`${String(label)}: not begun`);
    else line(`${String(label)}: ${now() - start} ms`, ...values);
  };
  return Object.freeze({
    log: line,
    info: line,
    debug: line,
    warn: line,
    error: line,
    dir: line,
    trace: line,
    table: line,
    dirxml: line,
    group: line,
    groupCollapsed: line,
    groupEnd: () => undefined,
    clear: () => undefined,
    count,
    countReset: (label: unknown = "default"): void => void counts.delete(String(label)),
    time: (label: unknown = "default"): void => {
      if (!starts.has(String(label))) starts.set(String(label), now());
    },
    timeLog,
    timeEnd: (label: unknown = "default"): void => {
      timeLog(label);
      starts.delete(String(label));
    },
    assert: (condition: unknown, ...values: unknown[]): void => {
      if (!condition) line("Assertion failed", ...values);
    },
  });
}

export function show(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return value.stack ?? String(value);
  try {
    return inspector()(value, { depth: 6, maxStringLength: 10_000 });
  } catch {
    return "[a value that cannot be shown]";
  }
}
