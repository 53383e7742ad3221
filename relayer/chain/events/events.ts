/** Queries of indexed events, in the API's form. */
import { sql, type RawBuilder, type Selectable } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import type { AccountId, Address, Hash32 } from "../../../protocol/ids";
import { WIRE_LIMITS } from "../../../protocol/limits";
import type { Db } from "../../store/database";
import type { ChainEventsTable } from "../../store/tables/chain";
import type { EventOrder, EventPage, OwnedAccount, Registration } from "../types";

const CURSOR = /^(0|[1-9][0-9]{0,15})$/;
/** Bounds the list, since anyone can transfer accounts to any address; owners of more accounts have to name one. */
const MAX_CANDIDATES = 200;

/** Anyone can register an address that is not theirs: bounds the list. */
const MAX_REGISTRATIONS = 20;
/** Events that name an account's owner. */
const OWNING = ["AccountCreated", "AccountConvertedToChainSecured", "AccountOwnershipTransferred"];

export class Events {
  readonly #db: Db;

  constructor(db: Db) {
    this.#db = db;
  }

  /**
   * Row after row, until their arguments fill the page: what it has no room for is not read, since a contract that owns
   * an account makes events as large as a transaction allows, for nothing here.
   */
  async page(id: AccountId, after: string | undefined, limit: number, order: EventOrder): Promise<EventPage> {
    const cursor = parseCursor(after);
    const [beyond, direction] = order === "oldest" ? [sql`>`, sql`asc`] : [sql`<`, sql`desc`];
    const start = order === "newest" && cursor === 0 ? Number.MAX_SAFE_INTEGER : cursor;
    const next = (from: RawBuilder<unknown>): RawBuilder<unknown> => sql`(
      select cursor, octet_length(args::text)::int8 as bytes from chain_events
      where account_id = ${id} and cursor ${beyond} ${from} order by cursor ${direction} limit 1)`;
    const { rows } = await sql<Selectable<ChainEventsTable>>`
      with recursive page as (
        select cursor, bytes, 1 as place from ${next(sql`${start}::int8`)} as first
        union all
        select following.cursor, page.bytes + following.bytes, place + 1
        from page cross join lateral ${next(sql`page.cursor`)} as following
        where place < ${limit}::int4 and page.bytes + following.bytes <= ${sql.lit(WIRE_LIMITS.eventsPageBytes)}
      )
      select chain_events.* from page join chain_events using (cursor) order by cursor ${direction}`.execute(this.#db);
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
   * Accounts this address has owned at some time, its own before those given to it, each oldest first: so gifts cannot
   * crowd out a wallet's own accounts. An account is a wallet's own by an act of the wallet: it was created as the
   * wallet's, or converted with the wallet's verified consent, or the wallet has written to it since it was handed over
   * (or back). Only its owner can write to an unmanaged account, so every later event of one is the owner's act.
   */
  async accountsEverOwnedBy(owner: Address): Promise<readonly OwnedAccount[]> {
    const { rows } = await sql<{ id: AccountId; isGiven: boolean }>`
      with taken as (
        select account_id as id, min(cursor) as first, max(cursor) as last,
          (array_agg(name order by cursor desc))[1] as name
        from chain_events where owner = ${owner} and name = any(${OWNING}::text[]) and not removed and not retracted
        group by account_id
      )
      select id, name = 'AccountOwnershipTransferred' and not exists (
        select from chain_events act where act.account_id = taken.id and act.cursor > taken.last
          and not act.removed and not act.retracted
      ) as "isGiven"
      from taken order by "isGiven", first limit ${sql.lit(MAX_CANDIDATES)}`.execute(this.#db);
    return rows;
  }

  /** Whether others handed the account to this owner, who has not written to it since. */
  async isGiven(id: AccountId, owner: Address): Promise<boolean> {
    const { rows } = await sql<{ isGiven: boolean }>`
      select exists (
        select from chain_events taken where taken.owner = ${owner} and taken.account_id = ${id}
          and taken.name = 'AccountOwnershipTransferred' and not taken.removed and not taken.retracted
          and not exists (
            select from chain_events act where act.account_id = ${id} and act.cursor > taken.cursor
              and not act.removed and not act.retracted
          )
      ) as "isGiven"`.execute(this.#db);
    return rows[0]?.isGiven === true;
  }

  /** The accounts that have registered this address as a PKP, with its path there, oldest first. */
  async registrationsOf(wallet: Address): Promise<readonly Registration[]> {
    const { rows } = await sql<Registration>`
      select account_id as "accountId", ${hashInArgs("derivationPath")} as "derivationPath" from chain_events
      where owner = ${wallet} and name = 'WalletDerivationRegistered' and not removed and not retracted
      order by cursor limit ${sql.lit(MAX_REGISTRATIONS)}`.execute(this.#db);
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

/**
 * A hash among an event's arguments, read from their text: JSON's operators fail at a name with U+0000, which anybody
 * may give.
 */
export const hashInArgs = (name: string): RawBuilder<string> =>
  sql`substring(chain_events.args::text from ${sql.lit(`"${name}":"(0x[0-9a-f]{64})"`)})`;

function parseCursor(after: string | undefined): number {
  if (after === undefined || after === "") return 0;
  if (!CURSOR.test(after))
    throw new KeywrightError("invalid_value", "after is not a cursor this service gave.", { field: "after" });
  return Number(after);
}
