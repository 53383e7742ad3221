/** What fires a trigger, in a plain sentence. */
import cronstrue from "cronstrue";
import { nextDue, problemOf } from "../../../protocol/schedule";
import { plural, short } from "../../components/text";
import type { Trigger } from "./stopped";

/** `Europe/Berlin` → `Berlin`. */
const placeOf = (timeZone: string): string => timeZone.split("/").at(-1)?.replaceAll("_", " ") ?? timeZone;

export function scheduleSentence(cron: string, timeZone: string): string {
  if (cron === "* * * * *") return "Every minute";
  return `${plainOf(cron)} in ${placeOf(timeZone)}`;
}

function plainOf(cron: string): string {
  try {
    return cronstrue
      .toString(cron, { use24HourTimeFormat: true, verbose: false })
      .replace(/^At (.*), Monday through Friday$/, "Every weekday at $1")
      .replace(/^At (\d\d:\d\d)$/, "Every day at $1");
  } catch {
    // Schedules know more than this library does, such as +MON.
    return cron;
  }
}

export function sentenceOf({ schedule, event, hook }: Pick<Trigger, "schedule" | "event" | "hook">): string {
  if (schedule !== undefined) return scheduleSentence(schedule.cron, schedule.time_zone);
  if (event !== undefined) {
    const where = event.chain_id === undefined ? "" : ` on chain ${event.chain_id}`;
    return `When ${short(event.address)} logs an event${where}, after ${plural(event.confirmations, "confirmation")}`;
  }
  const checks = { none: "anybody with its URL", hmac: "a signed request", standard_webhooks: "a signed webhook" };
  return `By ${checks[(hook?.verification ?? "none") as keyof typeof checks]}`;
}

/** The next due times, or what is wrong with the pattern. */
export function preview(cron: string, timeZone: string): { readonly due: readonly Date[]; readonly problem?: string } {
  const timetable = { cron, time_zone: timeZone };
  const problem = problemOf(timetable, Date.now());
  if (problem !== undefined) return { due: [], problem: `${problem.field} ${problem.message}` };
  const due: Date[] = [];
  for (let next = nextDue(timetable, Date.now()); next !== undefined && due.length < 3; next = nextDue(timetable, next))
    due.push(new Date(next));
  return { due };
}
