/** Due times of schedules, compared with a reading of the wall clock minute by minute in every kind of time zone. */
import { expect } from "chai";
import fc from "fast-check";
import { isDueTime, lastDue, nextDue, problemOf } from "../../protocol/schedule";
import { SEED, count } from "../support/counts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Changes by an hour, by half an hour, at midnight, south of the equator, and never; offsets of 45 and 30 minutes. */
const ZONES = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "America/St_Johns",
  "America/Havana",
  "Australia/Lord_Howe",
  "Africa/Casablanca",
  "Asia/Kathmandu",
  "Pacific/Chatham",
];

interface Clock {
  readonly minute: number;
  readonly hour: number;
  readonly day: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();
function clockOf(zone: string, atMs: number): Clock {
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      hourCycle: "h23",
      minute: "2-digit",
      hour: "2-digit",
      day: "2-digit",
    });
  formats.set(zone, format);
  const parts = Object.fromEntries(format.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]));
  return { minute: parts["minute"] ?? 0, hour: parts["hour"] ?? 0, day: parts["day"] ?? 0 };
}

/** Minutes after `fromMs` at which the clock of the zone shows a time of the list. */
function byTheClock(zone: string, fromMs: number, toMs: number, fits: (clock: Clock) => boolean): number[] {
  const found: number[] = [];
  for (let at = fromMs + MINUTE_MS; at <= toMs; at += MINUTE_MS) if (fits(clockOf(zone, at))) found.push(at);
  return found;
}

function dueBetween(cron: string, zone: string, fromMs: number, toMs: number): number[] {
  const found: number[] = [];
  for (let at = nextDue({ cron, time_zone: zone }, fromMs); at !== undefined && at <= toMs;)
    (found.push(at), (at = nextDue({ cron, time_zone: zone }, at)));
  return found;
}

/** Days around which the clocks change somewhere, and others. */
const day = fc.constantFrom(
  ...[Date.UTC(2026, 2, 8), Date.UTC(2026, 2, 29), Date.UTC(2026, 3, 5), Date.UTC(2026, 8, 27), Date.UTC(2026, 9, 4)],
  ...[Date.UTC(2026, 9, 25), Date.UTC(2026, 10, 1), Date.UTC(2026, 5, 15), Date.UTC(2028, 1, 29)],
);
const zone = fc.constantFrom(...ZONES);
const start = fc.tuple(day, fc.integer({ min: -20, max: 20 })).map(([at, hours]) => at + hours * HOUR_MS);
const few = (max: number): fc.Arbitrary<number[]> =>
  fc.uniqueArray(fc.integer({ min: 0, max }), { minLength: 2, maxLength: 4 });
const runs = { numRuns: count(60, 3_000), seed: SEED };

describe("due times", function () {
  this.timeout(120_000);

  it("of lists, ranges and steps are those that the clock shows: none in the gap, both in the double hour", () => {
    fc.assert(
      fc.property(zone, start, few(59), few(23), (time_zone, from, minutes, hours) => {
        const to = from + 30 * HOUR_MS;
        const shown = byTheClock(
          time_zone,
          from,
          to,
          ({ minute, hour }) => minutes.includes(minute) && hours.includes(hour),
        );
        expect(dueBetween(`${minutes.join()} ${hours.join()} * * *`, time_zone, from, to)).to.deep.equal(shown);
      }),
      runs,
    );
  });

  it("of a fixed time come once a day: first of the double hour, and at the end of the gap", () => {
    fc.assert(
      fc.property(zone, start, fc.nat(59), fc.nat(23), (time_zone, from, minute, hour) => {
        const to = from + 60 * HOUR_MS;
        const cron = `${minute} ${hour} * * *`;
        const shown = byTheClock(
          time_zone,
          from - 3 * HOUR_MS,
          to,
          (clock) => clock.minute === minute && clock.hour === hour,
        );
        const firsts = shown.filter((at, i) => at - (shown[i - 1] ?? 0) > 3 * HOUR_MS);
        const due = dueBetween(cron, time_zone, from, to);
        const moved = due.filter((at) => !firsts.includes(at));
        expect(due.filter((at) => !moved.includes(at))).to.deep.equal(firsts.filter((at) => at > from));
        for (const at of moved) {
          const before = clockOf(time_zone, at - MINUTE_MS);
          const after = clockOf(time_zone, at);
          const jump = (after.hour * 60 + after.minute - before.hour * 60 - before.minute + 1_440) % 1_440;
          expect(jump, "moved only to the end of a gap").to.be.greaterThan(1);
        }
      }),
      runs,
    );
  });

  it("go forward, are found from any moment before them, and the last one is found again", () => {
    const cron = fc.constantFrom(
      "* * * * *",
      "*/7 * * * *",
      "30 2 * * *",
      "0 */2 * * *",
      "15,45 1-3 * * *",
      "0 0 29 2 *",
    );
    fc.assert(
      fc.property(zone, start, cron, fc.nat(600), (time_zone, from, pattern, minutes) => {
        const timetable = { cron: pattern, time_zone };
        const due = Number(nextDue(timetable, from));
        expect(due).to.be.greaterThan(from);
        expect(due % MINUTE_MS).to.equal(0);
        expect(isDueTime(timetable, due)).to.equal(true);
        const between = from + Math.floor(((due - from) * minutes) / 601);
        expect(nextDue(timetable, between)).to.equal(due);
        expect(lastDue(timetable, from, due)).to.equal(due);
        expect(lastDue(timetable, from, due - 1)).to.equal(undefined);
      }),
      runs,
    );
  });

  it("around summer time are these", () => {
    const clock = (cron: string, from: string, most: number): string[] =>
      dueBetween(cron, "Europe/Berlin", Date.parse(from), Date.parse(from) + 12 * HOUR_MS)
        .slice(0, most)
        .map((at) => new Date(at).toLocaleTimeString("sv", { timeZone: "Europe/Berlin" }).slice(0, 5));
    const gap = "2026-03-28T23:00:00Z";
    expect(clock("30 2 * * *", gap, 9)).to.deep.equal(["03:00"]);
    expect(clock("15,45 2 * * *", gap, 9)).to.deep.equal([]);
    expect(clock("30 1-3 * * *", gap, 9)).to.deep.equal(["01:30", "03:30"]);
    expect(clock("*/30 * * * *", gap, 6)).to.deep.equal(["00:30", "01:00", "01:30", "03:00", "03:30", "04:00"]);
    const double = "2026-10-24T22:00:00Z";
    expect(clock("30 2 * * *", double, 9)).to.deep.equal(["02:30"]);
    expect(clock("15,45 2 * * *", double, 9)).to.deep.equal(["02:15", "02:45", "02:15", "02:45"]);
    expect(clock("30 * * * *", double, 5)).to.deep.equal(["00:30", "01:30", "02:30", "02:30", "03:30"]);
  });

  it("never stop a search: a day that a zone left out has no due time", () => {
    const left = { cron: "0 12 30 12 *", time_zone: "Pacific/Apia" };
    const before = Date.UTC(2011, 11, 20);
    expect(Number(nextDue(left, before))).to.be.greaterThan(before);
    expect(Number(nextDue(left, Date.UTC(2011, 11, 29, 22)))).to.be.greaterThan(Date.UTC(2011, 11, 29, 22));
    expect(lastDue(left, before, Date.UTC(2012, 11, 31))).to.be.greaterThan(Date.UTC(2012, 0, 1));
    expect(problemOf({ cron: "0 0 30 2 *", time_zone: "UTC" }, before)?.message).to.equal("is never due");
  });
});
