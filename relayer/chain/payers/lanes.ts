/**
 * The payers as lanes: each has one row with a nonce counter that all instances draw from under the row's lock. A lane
 * is chosen from a snapshot at most a second old; the nonce itself never comes from memory.
 */
import { sql, type Selectable } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import type { Address } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import type { LanesTable } from "../../store/tables/chain";
import { TRANSACTION_IS_OPEN } from "../submissions/states";
import { wantBalance } from "./wanted";
import type { LaneStats } from "../types";

export interface Lane extends LaneStats {
  /** Has a transaction that has been pending for long. */
  readonly isSlow: boolean;
  readonly registered: boolean;
}

export interface LanesOptions {
  readonly db: Db;
  readonly maxInFlight: number;
}

const NOT_ENOUGH_GAS = "No API payer has gas enough.";
const FRESH_FOR_MS = 1_000;
const BETWEEN_LOOKS_MS = 25;
const SLOW_AFTER_MS = 3_000;

export class Lanes {
  #lanes: readonly Lane[] = [];
  /** By the clock that nobody sets back, as all spans. */
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;
  /** Reserved slots whose transactions have no row yet: no snapshot counts them. */
  readonly #entered = new Map<number, number>();
  /** Transactions this instance began since the snapshot, minus those that ended. */
  readonly #begun = new Map<number, number>();
  /** Rotates the start of the search, so that equally loaded lanes take turns. */
  #start = 0;
  readonly #options: LanesOptions;

  constructor(options: LanesOptions) {
    this.#options = options;
  }

  /**
   * Reserves a slot in the least busy lane that can pay `costWei` and has capacity. Waits for capacity, and for a
   * top-up if the admin payer can afford one, until `deadline` (ms since the epoch). Follow with `leave`. Throws
   * `no_payer_available`.
   */
  async enter(costWei: bigint, deadline: number): Promise<Lane> {
    for (;;) {
      const lane = await this.tryEnter(costWei);
      if (lane !== undefined) return lane;
      if (Date.now() >= deadline) throw (await this.canPay(costWei)) ? allBusy() : noPayer(NOT_ENOUGH_GAS);
      await new Promise((resolve) => setTimeout(resolve, BETWEEN_LOOKS_MS));
    }
  }

  /** Undefined when a retry shortly may succeed. */
  async tryEnter(costWei: bigint): Promise<Lane | undefined> {
    const lane = this.#leastBusy((await this.#usable(costWei)).filter((each) => this.#hasRoom(each)));
    if (lane === undefined) this.#readAt = -Infinity;
    else count(this.#entered, lane.payer, 1);
    return lane;
  }

  /** Any lane registered with the contract, to simulate as. Throws `no_payer_available`. */
  async anyRegistered(): Promise<Lane> {
    const find = (): Lane | undefined => this.#lanes.find(({ payer, registered }) => payer > 0 && registered);
    await this.#refresh(false);
    if (find() === undefined) await this.#refresh(true);
    return find() ?? raise(noPayer("No API payer is registered with the contract."));
  }

  /** Gives a slot back: its transaction has been stored, or there is none. */
  leave(payer: number, isBegun: boolean): void {
    count(this.#entered, payer, -1);
    if (isBegun) count(this.#begun, payer, 1);
  }

  /**
   * A transaction of the lane has its outcome. One begun on another instance, or ended before the snapshot, was never
   * counted here and must not free a slot.
   */
  end(payer: number): void {
    if (this.#underWay(payer) > 0) count(this.#begun, payer, -1);
  }

  async all(): Promise<readonly Lane[]> {
    await this.#refresh(!this.#lanes.some(({ usable }) => usable));
    return this.#lanes;
  }

  /** Whether some payer can pay this amount now. */
  async canPay(costWei: bigint): Promise<boolean> {
    await this.#refresh(false);
    return this.#lanes.some((lane) => lane.usable && lane.balanceWei >= costWei);
  }

  /** Has payers topped up, for a while, to what can pay this. */
  want(costWei: bigint): Promise<void> {
    return wantBalance(this.#options.db, costWei);
  }

  /** Lanes that can pay; none while a top-up is awaited. Throws `no_payer_available` when waiting would not help. */
  async #usable(costWei: bigint): Promise<readonly Lane[]> {
    const find = (): readonly Lane[] => this.#lanes.filter((lane) => lane.usable && lane.balanceWei >= costWei);
    await this.#refresh(false);
    if (find().length === 0) await this.#refresh(true);
    if (find().length === 0) await this.#awaitTopUp(costWei);
    return find();
  }

  async #awaitTopUp(costWei: bigint): Promise<void> {
    if (!this.#lanes.some(({ usable }) => usable)) throw noPayer("No API payer is registered and funded.");
    await this.want(costWei);
    const admin = this.#lanes.find(({ payer }) => payer === 0);
    if (admin === undefined || admin.balanceWei <= costWei) throw noPayer(NOT_ENOUGH_GAS);
  }

  #leastBusy(lanes: readonly Lane[]): Lane | undefined {
    this.#start += 1;
    const rotated = lanes.map((_, index) => lanes[(index + this.#start) % lanes.length] as Lane);
    return rotated.reduce<Lane | undefined>(
      (best, lane) => (best === undefined || this.#load(lane) < this.#load(best) ? lane : best),
      undefined,
    );
  }

  /** A transaction queued behind a slow one is delayed with it: a slow lane accepts nothing more. */
  #hasRoom(lane: Lane): boolean {
    const load = this.#load(lane);
    return load === 0 || (load < this.#options.maxInFlight && !lane.isSlow);
  }

  #load(lane: Lane): number {
    return this.#underWay(lane.payer) + (this.#entered.get(lane.payer) ?? 0);
  }

  #underWay(payer: number): number {
    const inFlight = this.#lanes.find((lane) => lane.payer === payer)?.inFlight ?? 0;
    return inFlight + (this.#begun.get(payer) ?? 0);
  }

  async #refresh(now: boolean): Promise<void> {
    if (!now && performance.now() - this.#readAt < FRESH_FOR_MS) return;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { rows } = await sql<LaneRow>`
      select lanes.*, under_way.in_flight,
        coalesce(under_way.since < now() - ${SLOW_AFTER_MS} * interval '1 millisecond', false) as is_slow
      from lanes cross join lateral (
        select count(*) as in_flight, min(created_at) as since from transactions
        where transactions.payer = lanes.payer and ${TRANSACTION_IS_OPEN}
      ) as under_way order by payer`.execute(this.#options.db);
    this.#lanes = rows.map(laneOf);
    this.#begun.clear();
    this.#readAt = performance.now();
  }
}

function count(places: Map<number, number>, payer: number, change: number): void {
  places.set(payer, (places.get(payer) ?? 0) + change);
}

type LaneRow = Selectable<LanesTable> & { readonly in_flight: number; readonly is_slow: boolean };

function laneOf(row: LaneRow): Lane {
  const balanceWei = BigInt(row.balance_wei);
  return {
    payer: row.payer,
    address: row.address as Address,
    balanceWei,
    nextNonce: row.next_nonce,
    inFlight: row.in_flight,
    isSlow: row.is_slow,
    draining: row.draining,
    registered: row.registered,
    usable: row.payer > 0 && row.registered && !row.draining && balanceWei > 0n,
  };
}

export const allBusy = (): KeywrightError => noPayer("Every API payer has as many writes under way as it may have.");

const noPayer = (detail: string): KeywrightError =>
  new KeywrightError("no_payer_available", `${detail} Nothing was sent or charged.`, {}, { retryAfterSeconds: 5 });

function raise(error: Error): never {
  throw error;
}
