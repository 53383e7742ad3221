/** Human-readable numbers, times and ids. */

export const short = (id: string): string =>
  id.length > 20 ? `${id.slice(0, id.startsWith("0x") ? 8 : 6)}…${id.slice(-6)}` : id;

/** US cents as dollars: $20.00, −$0.05. */
export function dollars(cents: number): string {
  const absolute = Math.abs(cents);
  const whole = Math.floor(absolute / 100).toLocaleString("en-US");
  return `${cents < 0 ? "−" : ""}$${whole}.${String(Math.round(absolute % 100)).padStart(2, "0")}`;
}

/** Without the commas of grouped thousands. All other commas stay: 0,125 may be meant as a fraction. */
export const ungrouped = (text: string): string =>
  /^[1-9]\d{0,2}(,\d{3})+(\.\d+)?$/.test(text) ? text.replaceAll(",", "") : text;

/** Cents of a typed sum of dollars: 5, 7.5, $20, 1,000.00; undefined when it is none. */
export function centsIn(typed: string): number | undefined {
  const plain = ungrouped(typed.trim().replace(/^\$ ?/, ""));
  const [, whole, part = ""] = /^(\d{1,9})(?:[.,](\d{1,2}))?$/.exec(plain) ?? [];
  return whole === undefined ? undefined : Number(whole) * 100 + Number(part.padEnd(2, "0"));
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const TIME = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" } as const;
const THIS_YEAR = new Intl.DateTimeFormat(undefined, TIME);
const ANOTHER_YEAR = new Intl.DateTimeFormat(undefined, { ...TIME, year: "numeric" });
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

export const day = (at: Date | string | number): string => DATE.format(new Date(at));
/** To the minute, in the reader's time zone; with the year if it is not the current one. */
export const moment = (at: Date): string =>
  (at.getFullYear() === new Date().getFullYear() ? THIS_YEAR : ANOTHER_YEAR).format(at);
/** To the second, with the time zone. */
export const exactly = (at: Date): string => EXACT.format(at);

/** `1 action`, `3 actions`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;

/** `a`, `a and b`, `a, b and c`. */
export function listed(items: readonly string[]): string {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

export const quoted = (name: string, otherwise: string): string => (name === "" ? otherwise : `“${name}”`);

/** Durations: 12 ms, 1.4 s. */
export const duration = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
