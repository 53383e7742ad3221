/**
 * Backdates an account's real runs and their costs over the last month, for screenshots: a service started a minute ago
 * has no history to show.
 */
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import type { Stack } from "../dev/stack";

const DAYS = 30;
const DAY_MS = 86_400_000;

/** Relative load of a day: rising from week to week, low at weekends. */
function weightOf(day: Date, at: number): number {
  const isWeekend = [0, 6].includes(day.getUTCDay());
  return (isWeekend ? 0.25 : 1) * (0.5 + at / DAYS + 0.3 * Math.sin(at));
}

/** Times of `count` runs, oldest first, up to a few minutes ago. */
function momentsOf(runs: number, now: number): Date[] {
  const days = Array.from({ length: DAYS }, (_, at) => new Date(now - (DAYS - 1 - at) * DAY_MS));
  const weights = days.map(weightOf);
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  const moments: Date[] = [];
  let reached = 0;
  for (const [at, day] of days.entries()) {
    reached += ((weights[at] ?? 0) / all) * runs;
    const ofDay = Math.round(reached) - moments.length;
    for (let number = 0; number < ofDay; number += 1)
      moments.push(new Date(day.getTime() - (ofDay - number) * 7 * 60_000));
  }
  return moments;
}

/** Ledger entries keep their order; entries between two runs get the time of the earlier one. */
async function dateEntries(database: PGlite, moments: readonly Date[]): Promise<void> {
  const { rows } = await database.query<{ id: number; kind: string }>(
    "select id, kind from ledger_entries order by id",
  );
  await database.exec("alter table ledger_entries disable trigger user");
  let runs = 0;
  for (const { id, kind } of rows) {
    const moment = moments[Math.min(kind === "run" ? runs++ : Math.max(0, runs - 1), moments.length - 1)];
    await database.query("update ledger_entries set created_at = $1 where id = $2", [moment, id]);
  }
  await database.exec("alter table ledger_entries enable trigger user");
}

/** The relayer must be stopped: its embedded database has one user at a time. */
export async function spreadOverTheLastMonth(stack: Stack): Promise<void> {
  await stack.service("relayer").stop();
  const database = await PGlite.create({ dataDir: join(stack.dataDir, "relayer", "pglite") });
  try {
    const { rows } = await database.query<{ run_id: string }>(
      "select run_id from run_records order by started_at, run_id",
    );
    const moments = momentsOf(rows.length, Date.now());
    for (const [at, { run_id: id }] of rows.entries())
      await database.query("update run_records set started_at = $1 where run_id = $2", [moments[at], id]);
    await database.exec(`delete from run_days;
      insert into run_days (account_id, day, key_id, runs, failed, cost_cents, duration_ms)
      select account_id, (started_at at time zone 'UTC')::date, key_id, count(*),
        count(*) filter (where outcome <> 'succeeded'), sum(cost_cents), sum(duration_ms)
      from run_records group by 1, 2, 3`);
    await dateEntries(database, moments);
  } finally {
    await database.close();
  }
  await stack.restart("relayer");
}
