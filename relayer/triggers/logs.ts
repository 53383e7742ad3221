/**
 * Finds the logs that fire triggers. One instance searches block after block, for each number of confirmations up to
 * the blocks that have as many; firings and position are stored together. A reorganisation deeper than that is searched
 * again from the last common block, and a log that has fired does not fire again in its new block.
 */
import { setImmediate } from "node:timers/promises";
import { sql, type RawBuilder } from "kysely";
import type { AccountId } from "../../protocol/ids";
import { TRIGGER_LIMITS } from "../../protocol/limits";
import { causeKeyOf, topicFilter, type EventSettings, type Settings } from "../../protocol/trigger";
import type { Block, Header } from "../chain/events/blockLogs";
import type { ChainLog } from "../chain/events/eventRows";
import type { LogSource } from "../chain/events/logSource";
import type { Db, Trx } from "../store/database";
import { CROWDED, UNREAD, type OnPaused } from "./firings";
import { newFiringId, storeFirings, type NewFiring } from "./due";

interface Watcher {
  readonly id: string;
  readonly account_id: AccountId;
  readonly settings: { readonly event: EventSettings };
  readonly from_block: number;
}

interface Position {
  readonly next: number;
  readonly recent: readonly Block[];
}

/** What the logs of a block are to make. */
interface Found {
  readonly firings: NewFiring[];
  /** Triggers whose logs are more than is kept of their account: some of theirs are missing. */
  readonly crowded: string[];
  /** Triggers whose contract's logs are more than can be read. */
  readonly unread: string[];
}

const NOTHING: Found = { firings: [], crowded: [], unread: [] };
const ACCOUNTS_CHAIN = 0;
const BLOCKS_AT_ONCE = 32;
/** Their reads and transactions share connections with all others. */
const DEPTHS_AT_ONCE = 4;
/** A block that cannot be read for so long is told of, again and again. */
const STOPPED_MS = 60_000;
const KEPT_BLOCKS = 256;
/** Logs that are compared before others have their turn: a few milliseconds. */
const COMPARED_AT_ONCE = 10_000;

export interface LogSearchOptions {
  readonly db: Db;
  /** By chain id; the account's has the id 0 here. */
  readonly sources: ReadonlyMap<number, LogSource>;
  readonly onPaused: OnPaused;
}

export class LogSearch {
  readonly #options: LogSearchOptions;
  readonly #chains: readonly ChainSearch[];
  readonly #underWay = new Set<ChainSearch>();
  #failure: Error | undefined;

  constructor(options: LogSearchOptions) {
    this.#options = options;
    this.#chains = [...options.sources].map(([chainId, logs]) => new ChainSearch(options, chainId, logs));
  }

  /** Newest block of the chain that these settings are about. */
  async headNumber(settings: Settings): Promise<number | undefined> {
    const chainId = "event" in settings ? (settings.event.chain_id ?? ACCOUNTS_CHAIN) : ACCOUNTS_CHAIN;
    return (await this.#options.sources.get(chainId)?.head())?.number;
  }

  /** Waits for the account's chain only: one that does not answer delays no other. Its failure is thrown later. */
  async turn(): Promise<void> {
    const failure = this.#failure;
    this.#failure = undefined;
    await Promise.all(
      this.#chains.map((chain) => (chain.chainId === ACCOUNTS_CHAIN ? chain.turn() : this.#start(chain))),
    );
    if (failure !== undefined) throw failure;
  }

  #start(chain: ChainSearch): void {
    if (this.#underWay.has(chain)) return;
    this.#underWay.add(chain);
    chain
      .turn()
      .catch((error: Error) => (this.#failure = error))
      .finally(() => this.#underWay.delete(chain));
  }
}

class ChainSearch {
  readonly #db: Db;
  readonly chainId: number;
  readonly #logs: LogSource;
  readonly #onPaused: OnPaused;
  /** The head up to which all is searched. */
  #searched: string | undefined;
  /** By confirmations: the block that cannot be read, and since when. */
  readonly #stopped = new Map<number, { readonly block: number; readonly sinceMs: number }>();

  constructor({ db, onPaused }: LogSearchOptions, chainId: number, logs: LogSource) {
    this.#db = db;
    this.chainId = chainId;
    this.#logs = logs;
    this.#onPaused = onPaused;
  }

  /** Most turns find no new block: then all that watch are not read again. */
  async turn(): Promise<void> {
    if (!(await this.#isWatched())) return;
    const head = await this.#logs.head();
    if (head === undefined || head.hash === this.#searched) return;
    // Read after the head: a block made after a trigger's activation is then never searched without it.
    const depths = Map.groupBy(await this.#watchers(), ({ settings }) => settings.event.confirmations);
    let failure: unknown;
    const isDone = await inPieces([...depths], DEPTHS_AT_ONCE, ([confirmations, those]) =>
      this.#search(confirmations, those, head.number - confirmations + 1).catch((error: unknown) => {
        failure ??= error;
        return false;
      }),
    );
    this.#searched = isDone.every((done) => done) ? head.hash : undefined;
    if (failure !== undefined) throw failure;
  }

  async #isWatched(): Promise<boolean> {
    const { rows } = await sql`select id from triggers where ${this.#watches} limit 1`.execute(this.#db);
    return rows.length > 0;
  }

  async #watchers(): Promise<readonly Watcher[]> {
    const { rows } = await sql<Watcher>`
      select id, account_id, settings, from_block from triggers where ${this.#watches} order by id`.execute(this.#db);
    return rows;
  }

  get #watches(): RawBuilder<boolean> {
    return sql<boolean>`state = 'active' and kind = 'event'
      and coalesce((settings->'event'->>'chain_id')::int8, 0) = ${this.chainId}::int8`;
  }

  /** Whether all blocks up to the last one are searched. */
  async #search(confirmations: number, watchers: readonly Watcher[], last: number): Promise<boolean> {
    const first = Math.min(...watchers.map(({ from_block }) => from_block));
    let at = await this.#position(confirmations);
    if (at === undefined || at.next < first) at = { next: first, recent: [] };
    for (let read = 0; read < BLOCKS_AT_ONCE; read += 1) {
      const moved = await this.#step(confirmations, watchers, at, last);
      this.#note(confirmations, moved === undefined ? at.next : undefined);
      if (moved === undefined || moved === "done") return moved === "done";
      at = moved;
    }
    return false;
  }

  /** @throws Error once for each minute in which the same block cannot be read. */
  #note(confirmations: number, block: number | undefined): void {
    const before = this.#stopped.get(confirmations);
    if (block === undefined) this.#stopped.delete(confirmations);
    else if (before?.block !== block) this.#stopped.set(confirmations, { block, sinceMs: Date.now() });
    else if (Date.now() - before.sinceMs >= STOPPED_MS) {
      this.#stopped.delete(confirmations);
      throw new Error(`block ${block} of chain ${this.chainId} stops the search for logs: it cannot be read`);
    }
  }

  /** `done` when there is no more to be read, undefined when it cannot be read now. */
  async #step(
    confirmations: number,
    watchers: readonly Watcher[],
    at: Position,
    last: number,
  ): Promise<Position | "done" | undefined> {
    const newest = at.recent.at(-1);
    const block = at.next <= last ? await this.#logs.block(at.next) : undefined;
    const isReplaced =
      block === undefined ? await this.#isReplaced(newest) : newest !== undefined && block.parentHash !== newest.hash;
    if (isReplaced)
      return this.#move(confirmations, at, { next: at.next - 1, recent: at.recent.slice(0, -1) }, NOTHING);
    if (block === undefined) return at.next > last ? "done" : undefined;
    const found = await this.#foundIn(block, watchers);
    if (found === undefined) return undefined;
    const { number, hash } = block;
    const recent = [...at.recent, { number, hash }].slice(-KEPT_BLOCKS);
    return this.#move(confirmations, at, { next: at.next + 1, recent }, found);
  }

  /** The last block searched is no longer the chain's. */
  async #isReplaced(newest: Block | undefined): Promise<boolean> {
    const now = newest && (await this.#logs.block(newest.number));
    return now !== undefined && now.hash !== newest?.hash;
  }

  /** Bounded for each account: a thousand triggers that watch a thousand logs are no million firings. */
  async #foundIn(block: Header, watchers: readonly Watcher[]): Promise<Found | undefined> {
    const firing: Found = { firings: [], crowded: [], unread: [] };
    const room = new Map<AccountId, number>();
    const watching = watchers.filter(({ from_block }) => from_block <= block.number);
    const byAddress = Map.groupBy(watching, ({ settings }) => settings.event.address.toLowerCase());
    const logsOf = await this.#logs.logsOf(block, [...byAddress.keys()]);
    if (logsOf === undefined) return undefined;
    for (const address of logsOf.unread) firing.unread.push(...(byAddress.get(address) ?? []).map(({ id }) => id));
    let compared = 0;
    for (const [address, those] of byAddress) {
      const logs = inOrder(logsOf.found.get(address) ?? []);
      compared += logs.length;
      for (const watcher of logs.length === 0 ? [] : those) {
        const left = room.get(watcher.account_id) ?? TRIGGER_LIMITS.waitingPerAccount;
        const firings = firingsOf(watcher, block, logs, left + 1);
        room.set(watcher.account_id, Math.max(0, left - firings.length));
        firing.firings.push(...firings.slice(0, left));
        if (firings.length > left) firing.crowded.push(watcher.id);
        compared += logs.length;
        if (compared < COMPARED_AT_ONCE) continue;
        compared = 0;
        await setImmediate();
      }
    }
    return firing;
  }

  async #move(confirmations: number, from: Position, to: Position, found: Found): Promise<Position | undefined> {
    const isMoved = await this.#db.transaction().execute(async (trx) => {
      const { rows } = await sql`
        insert into trigger_scans (chain_id, confirmations, next_block, recent)
        values (${this.chainId}, ${confirmations}, ${to.next}, ${JSON.stringify(to.recent)}::jsonb)
        on conflict (chain_id, confirmations) do update set next_block = excluded.next_block, recent = excluded.recent
          where trigger_scans.next_block <= ${from.next}::int8
        returning confirmations`.execute(trx);
      if (rows.length > 0 && Object.values(found).some(({ length }) => length > 0)) {
        await storeFirings(trx, found.firings);
        await this.#pauseCrowded(trx, found);
      }
      return rows.length > 0;
    });
    return isMoved ? to : undefined;
  }

  /**
   * A contract that logs more than its trigger's runs can follow would fill the store. What waits is counted once for
   * all triggers: an account may have a thousand, and ten thousand firings that wait.
   */
  async #pauseCrowded(trx: Trx, { firings, crowded, unread }: Found): Promise<void> {
    const [paused, missing] = [JSON.stringify([...crowded, ...unread]), JSON.stringify(unread)];
    const ids = JSON.stringify([...new Set([...crowded, ...unread, ...firings.map(({ triggerId }) => triggerId)])]);
    const accounts = JSON.stringify([...new Set(firings.map(({ accountId }) => accountId))]);
    const listed = (list: string) => sql`select jsonb_array_elements_text(${list}::jsonb)`;
    const { rows } = await sql<{ id: string; accountId: AccountId; reason: string }>`
      with waiting as materialized (
        select account_id, trigger_id, count(*) as own from trigger_firings
        where state = 'waiting' and account_id = any(array(${listed(accounts)})) group by account_id, trigger_id
      )
      update triggers set state = 'paused', reason = case when id in (${listed(missing)}) then ${UNREAD} else ${CROWDED}
        end
      where state = 'active' and id = any(array(${listed(ids)}))
        and (id in (${listed(paused)})
          or id in (select trigger_id from waiting where own > ${TRIGGER_LIMITS.waitingPerAccount})
          or account_id in (
            select account_id from waiting group by account_id having sum(own) > ${TRIGGER_LIMITS.waitingOfLogs}))
      returning id, account_id as "accountId", reason`.execute(trx);
    for (const row of rows) await this.#onPaused(trx, row);
  }

  async #position(confirmations: number): Promise<Position | undefined> {
    const row = await this.#db
      .selectFrom("trigger_scans")
      .selectAll()
      .where("chain_id", "=", this.chainId)
      .where("confirmations", "=", confirmations)
      .executeTakeFirst();
    return row && { next: row.next_block, recent: row.recent };
  }
}

async function inPieces<T, R>(all: readonly T[], size: number, work: (one: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let start = 0; start < all.length; start += size)
    done.push(...(await Promise.all(all.slice(start, start + size).map(work))));
  return done;
}

const inOrder = (logs: readonly ChainLog[]): ChainLog[] =>
  logs
    .map((log) => ({ ...log, topics: log.topics.map((topic) => topic.toLowerCase()) }))
    .sort((one, other) => Number(one.logIndex) - Number(other.logIndex));

/** The first ones, at most so many. */
function firingsOf(watcher: Watcher, block: Block, logs: readonly ChainLog[], most: number): NewFiring[] {
  const { id: triggerId, account_id: accountId, settings } = watcher;
  const { number: blockNumber, hash: blockHash } = block;
  const isWanted = topicFilter(settings.event.topics);
  const dueAt = new Date();
  const places = new Map<string, number>();
  const firings: NewFiring[] = [];
  for (const { topics, transactionHash } of logs) {
    if (firings.length === most) break;
    if (!isWanted(topics)) continue;
    const place = places.get(transactionHash) ?? 0;
    places.set(transactionHash, place + 1);
    const cause = { type: "event", blockNumber, blockHash, transactionHash, place } as const;
    const known = { id: newFiringId(), triggerId, accountId, causeKey: causeKeyOf(cause), cause };
    firings.push({ ...known, kind: "event", dueAt });
  }
  return firings;
}
