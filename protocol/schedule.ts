/**
 * Due times of a schedule: five cron fields in a time zone. Relayer and keyholder compute them with the same library,
 * so that the keyholder can check what a relayer says is due. Source: docs/triggers.md "Schedules".
 */
import { Cron } from "croner";
import { LRUCache } from "lru-cache";

export interface Timetable {
  /** Five fields: minute, hour, day of month, month, day of week. */
  readonly cron: string;
  /** An IANA name, such as Europe/Berlin. */
  readonly time_zone: string;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const FIVE_FIELDS = /^\S+( +\S+){4}$/;
/** Parsed patterns: many triggers share one. */
const parsed = new LRUCache<string, Cron>({ max: 2_000 });
/** Spans in which the last due time is looked for, shortest first, so that few due times are stepped through. */
const LOOK_BACK_MS = [60, 24 * 60, 32 * 24 * 60, 366 * 24 * 60, 9 * 366 * 24 * 60].map(
  (minutes) => minutes * MINUTE_MS,
);

function cronOf({ cron, time_zone: timezone }: Timetable): Cron {
  const name = `${timezone}\n${cron}`;
  const known = parsed.get(name);
  if (known !== undefined) return known;
  const made = new Cron(cron, { timezone, mode: "5-part", paused: true });
  parsed.set(name, made);
  return made;
}

/** What is wrong with a timetable; undefined if it has due times. */
export function problemOf(
  timetable: Timetable,
  nowMs: number,
): { field: keyof Timetable; message: string } | undefined {
  if (!isTimeZone(timetable.time_zone))
    return { field: "time_zone", message: "must be an IANA time zone, such as UTC" };
  if (!FIVE_FIELDS.test(timetable.cron))
    return { field: "cron", message: "must have five fields: minute, hour, day of month, month, day of week" };
  try {
    if (nextDue(timetable, nowMs) !== undefined) return undefined;
    return { field: "cron", message: "is never due" };
  } catch {
    return { field: "cron", message: "must be five cron fields with values that exist, such as 0 9 * * 1-5" };
  }
}

function isTimeZone(name: string): boolean {
  try {
    return /^[A-Za-z]/.test(name) && new Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

/** The first due time after `afterMs`, in ms since 1970; undefined if there is none. */
export function nextDue(timetable: Timetable, afterMs: number): number | undefined {
  const cron = cronOf(timetable);
  // Of a day that its zone has left out the library gives the same moment again and again.
  for (let from = afterMs; ; from += HOUR_MS) {
    const due = cron.nextRun(new Date(from))?.getTime();
    if (due === undefined || due > afterMs) return due;
  }
}

/** Whether this moment is a due time. */
export const isDueTime = (timetable: Timetable, atMs: number): boolean =>
  atMs % MINUTE_MS === 0 && nextDue(timetable, atMs - 1_000) === atMs;

/** The last due time at or before `atMs` that is after `afterMs`; undefined if there is none. */
export function lastDue(timetable: Timetable, afterMs: number, atMs: number): number | undefined {
  for (const span of LOOK_BACK_MS) {
    const from = Math.max(afterMs, atMs - span);
    let found: number | undefined;
    for (let due = nextDue(timetable, from); due !== undefined && due <= atMs; due = nextDue(timetable, due))
      found = due;
    if (found !== undefined || from === afterMs) return found;
  }
  return undefined;
}
