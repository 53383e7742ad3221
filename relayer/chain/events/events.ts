/** Queries of indexed events, in the API's form. */
import { sql } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import type { AccountId, Address, Hash32 } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import type { EventPage, OwnedAccount } from "../types";

const CURSOR = /^(0|[1-9][0-9]{0,15})$/;
/** Bounds the list, since anyone can transfer accounts to any address; owners of more accounts have to name one. */
const MOST_CANDIDATES = 200;

export class Events {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  async page(id: AccountId, after: string | undefined, limit: number): Promise<EventPage> {
    const cursor = parseCursor(after);
    const rows = await this.#db
      .selectFrom("chain_events")
      .selectAll()
      .where("account_id", "=", id)
      .where("cursor", ">", cursor)
      .orderBy("cursor")
      .limit(limit)
      .execute();
    const events = rows.map((row) => ({
      cursor: String(row.cursor),
      name: row.name,
      blockNumber: row.block_number,
      transactionHash: row.transaction_hash as Hash32,
      logIndex: row.log_index,
      args: row.args,
      removed: row.removed,
    }));
    return { events, next: events.at(-1)?.cursor ?? String(cursor) };
  }

  /**
   * Accounts this address has owned at some time: first those it created or took over by a conversion it signed, then
   * those transferred to it, each oldest first. So gifts cannot crowd out a wallet's own accounts.
   */
  async accountsEverOwnedBy(owner: Address): Promise<readonly OwnedAccount[]> {
    const { rows } = await sql<{ id: AccountId; byTransfer: boolean }>`
      select account_id as id, (array_agg(name order by cursor desc))[1] = 'AccountOwnershipTransferred' as "byTransfer"
      from chain_events where owner = ${owner} and not removed and not retracted and account_id is not null
      group by account_id order by "byTransfer", min(cursor) limit ${sql.lit(MOST_CANDIDATES)}`.execute(this.#db);
    return rows;
  }

  /** The newest block whose events are stored; -1 before the first. */
  async followedBlock(): Promise<number> {
    const newest = await this.#db
      .selectFrom("followed_blocks")
      .select("number")
      .orderBy("number", "desc")
      .limit(1)
      .executeTakeFirst();
    return newest?.number ?? -1;
  }
}

function parseCursor(after: string | undefined): number {
  if (after === undefined || after === "") return 0;
  if (!CURSOR.test(after))
    throw new KeywrightError("invalid_value", "after is not a cursor this service gave.", { field: "after" });
  return Number(after);
}
