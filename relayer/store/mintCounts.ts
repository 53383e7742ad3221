/** What was used of the budget of new accounts and keys, in total and by network; one for all relayers on the store. */
import { sql } from "kysely";
import type { Db } from "./database";
import { lock } from "./locks";

/** As of when it was last changed. */
export interface Count {
  readonly points: number;
  readonly ageMs: number;
}

export interface Counts {
  /**
   * Replaces the counts of these names by what `change` makes of them, or leaves them if it returns undefined; false
   * then. Changes happen one after the other; `change` may be called twice.
   */
  change(
    names: readonly string[],
    change: (counts: readonly Count[]) => readonly number[] | undefined,
  ): Promise<boolean>;
}

export const storeCounts = (db: Db): Counts => ({
  async change(names, change) {
    // Most requests of a crowd are refused, and must not wait for each other.
    if (change(await read(db, names)) === undefined) return false;
    return db.transaction().execute(async (trx) => {
      await lock(trx, "mintCounts");
      const changed = change(await read(trx, names));
      if (changed === undefined) return false;
      await sql`insert into mint_counts (name, points, counted_at)
        select name, points, clock_timestamp() from unnest(${names}::text[], ${changed}::float8[]) new (name, points)
        on conflict (name) do update set points = excluded.points, counted_at = excluded.counted_at`.execute(trx);
      return true;
    });
  },
});

async function read(db: Db, names: readonly string[]): Promise<Count[]> {
  const { rows } = await sql<{ name: string; points: number; age_ms: number }>`
    select name, points, greatest(0, extract(epoch from clock_timestamp() - counted_at) * 1000)::float8 as age_ms
    from mint_counts where name = any(${names}::text[])`.execute(db);
  const counts = new Map(rows.map(({ name, points, age_ms: ageMs }) => [name, { points, ageMs }]));
  return names.map((name) => counts.get(name) ?? { points: 0, ageMs: 0 });
}

/** For a relayer without a store, and tests. */
export function memoryCounts(nowMs: () => number = Date.now): Counts {
  const counts = new Map<string, { readonly points: number; readonly at: number }>();
  return {
    async change(names, change) {
      const now = nowMs();
      const changed = change(
        names.map((name) => {
          const { points, at } = counts.get(name) ?? { points: 0, at: now };
          return { points, ageMs: now - at };
        }),
      );
      if (changed === undefined) return false;
      names.forEach((name, i) => counts.set(name, { points: changed[i] ?? 0, at: now }));
      return true;
    },
  };
}
