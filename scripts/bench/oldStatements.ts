/** The slowest execution of each statement of a day's work on an old store whose caches are empty. */
import { writeFileSync } from "node:fs";
import type { PostgresPool } from "kysely";
import { reopenOrphans, undoAbove } from "../../relayer/chain/events/reorg";
import { Audit } from "../../relayer/credits/audit";
import { recordEnds } from "../../relayer/credits/runRecords";
import type { Db } from "../../relayer/store/database";
import { dropOld } from "../../relayer/store/retention";
import { timed } from "./statistics";

/** No statement may take longer: others wait for its connection, and for the rows that it locks. */
export const MOST_STATEMENT_MS = 100;
const AUDIT_TURNS = 100;

/** Notes how long statements take, by their text. */
export class SlowestStatements {
  readonly #ms = new Map<string, number>();

  readonly around = (pool: PostgresPool): PostgresPool => ({
    connect: async () => {
      const client = await pool.connect();
      const query = client.query.bind(client) as unknown as (
        text: string,
        values: readonly unknown[],
      ) => Promise<unknown>;
      const noting = async (text: string, values: readonly unknown[]): Promise<unknown> => {
        let answer: unknown;
        const ms = await timed(async () => (answer = await query(text, values)));
        this.#ms.set(text, Math.max(ms, this.#ms.get(text) ?? 0));
        return answer;
      };
      return { query: noting as unknown as typeof client.query, release: () => client.release() };
    },
    end: () => pool.end(),
  });

  forget(): void {
    this.#ms.clear();
  }

  /** The slowest first, in milliseconds. */
  list(): { readonly ms: number; readonly statement: string }[] {
    const all = [...this.#ms].map(([text, ms]) => ({
      ms: Math.round(ms * 10) / 10,
      statement: text.replace(/\s+/g, " ").trim().slice(0, 160),
    }));
    return all.sort((a, b) => b.ms - a.ms);
  }
}

/** Beside requests: what a relayer does every second, minute and hour, and at a reorg. */
export async function backgroundWork(db: Db): Promise<void> {
  await db
    .insertInto("followed_blocks")
    .values([
      { number: 1_000_000, hash: "0x1" },
      { number: 1_000_001, hash: "0x2" },
    ])
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await reopenOrphans(db);
  await db.transaction().execute((trx) => undoAbove(trx, { number: 1_000_000, hash: "0x1" }));
  await recordEnds(db);
  const audit = new Audit({ db, onWrong: () => undefined });
  for (let turn = 0; turn < AUDIT_TURNS; turn++) await audit.turn();
  await dropOld(db, { detailDays: 7, runRecordsDays: 90 });
}

/** Of the operating system, for the whole machine; false where this process may not. */
export function dropCaches(): boolean {
  try {
    writeFileSync("/proc/sys/vm/drop_caches", "1");
    return true;
  } catch {
    return false;
  }
}
