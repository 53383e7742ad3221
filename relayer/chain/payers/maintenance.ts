/**
 * Maintains the lanes for all instances: the set of payers, their registration with the contract, their gas, and nonce
 * counters without gaps or drift.
 */
import { sql } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import type { Address } from "../../../protocol/ids";
import { RpcError } from "../../../protocol/rpc/errors";
import type { Db } from "../../store/database";
import type { SendingParts } from "../submissions/transactionMonitor";
import { wantedBalance, wantedPayers } from "./wanted";
import { UseOfNonce } from "./useOfNonce";
import { countIn } from "../rpc/quantities";
import { TRANSACTION_IS_OPEN } from "../submissions/states";

type Shared = "rpc" | "executor" | "transactions" | "fees" | "monitor" | "log" | "tuning";
export interface PayerMaintenanceOptions extends Pick<SendingParts, Shared> {
  readonly db: Db;
  readonly apiPayers: () => Promise<readonly Address[]>;
}

interface Observed {
  readonly payer: number;
  readonly address: string;
  readonly nextNonce: number;
  /** The payer's transaction count on chain. */
  readonly chainNonce: number;
  readonly balanceWei: bigint;
  readonly draining: boolean;
}

interface TopUpFigures {
  readonly belowWei: bigint;
  readonly toWei: bigint;
}

/** What a lane's nonces lack: a counter at `next`, and transactions with the gaps. */
interface Drift {
  readonly next: number;
  readonly gaps: readonly number[];
}

/** How far above the chain's count gaps are looked for. */
const NONCES_SEEN = 1_000;

export class PayerMaintenance {
  /** Nonce anomalies per lane at the last check: repaired only when the next check finds the same. */
  readonly #suspected = new Map<number, string>();
  readonly #options: PayerMaintenanceOptions;

  constructor(options: PayerMaintenanceOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    await this.#matchPool();
    const lanes = await this.#observe();
    const repairs = await Promise.allSettled(lanes.map((lane) => this.#repairNonces(lane)));
    await this.#topUp(lanes);
    for (const repair of repairs) if (repair.status === "rejected") throw repair.reason;
  }

  /** Adds missing lanes, drains those beyond the wanted number. */
  async #matchPool(): Promise<void> {
    const { db, executor } = this.#options;
    const wanted = await wantedPayers(db);
    const lanes = await db.selectFrom("lanes").select(["payer", "draining"]).execute();
    const known = new Set(lanes.map(({ payer }) => payer));
    if (!known.has(0) || known.size <= wanted)
      await this.#addLanes(await executor.call("payers", { count: wanted }), known);
    const isOff = lanes.some(({ payer, draining }) => draining !== payer > wanted);
    if (isOff)
      await db
        .updateTable("lanes")
        .set({ draining: sql<boolean>`payer > ${wanted}` })
        .execute();
  }

  async #addLanes(
    { adminPayer, payers }: { adminPayer: string; payers: string[] },
    known: ReadonlySet<number>,
  ): Promise<void> {
    for (const [payer, address] of [adminPayer, ...payers].entries()) {
      if (known.has(payer)) continue;
      const next_nonce = await this.#agreedCount(address);
      // A wrong count would be hard to mend once transactions have nonces from it.
      const isCredible = next_nonce === 0 || this.#suspected.get(payer) === String(next_nonce);
      this.#suspected.set(payer, String(next_nonce));
      if (next_nonce === undefined || !isCredible) continue;
      await this.#options.db
        .insertInto("lanes")
        .values({ payer, address, next_nonce })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    }
  }

  async #observe(): Promise<readonly Observed[]> {
    const { db, rpc, apiPayers } = this.#options;
    const registered = new Set(await apiPayers());
    const lanes = await db.selectFrom("lanes").selectAll().orderBy("payer").execute();
    return Promise.all(
      lanes.map(async ({ payer, address, next_nonce: nextNonce, draining, ...known }) => {
        const [count, balance] = await rpc.callTogether([
          { method: "eth_getTransactionCount", params: [address, "latest"] },
          { method: "eth_getBalance", params: [address, "latest"] },
        ]);
        const balanceWei = BigInt(balance as string);
        const now = { registered: registered.has(address as Address), balance_wei: balanceWei.toString() };
        if (now.registered !== known.registered || now.balance_wei !== known.balance_wei)
          await db.updateTable("lanes").set(now).where("payer", "=", payer).execute();
        return { payer, address, nextNonce, chainNonce: countIn(count), balanceWei, draining };
      }),
    );
  }

  /**
   * Counter behind the chain: the payer was used elsewhere, or the store is an older copy; the counter is raised.
   * Counter ahead, with nonces of no transaction: it is lowered past those at the top, others are filled with no-ops.
   * Only when seen twice, since a node may lag, and when `#isWitnessed`.
   */
  async #repairNonces(lane: Observed): Promise<void> {
    const drift = await this.#driftOf(lane);
    const suspicion = drift === undefined ? "" : `${drift.next} ${drift.gaps.join()}`;
    const isSeenTwice = this.#suspected.get(lane.payer) === suspicion;
    this.#suspected.set(lane.payer, suspicion);
    if (drift === undefined || !isSeenTwice || !(await this.#isWitnessed(lane))) return;
    this.#suspected.delete(lane.payer);
    this.#options.log.warn(
      { payer: lane.payer, nextNonce: lane.nextNonce, chainNonce: lane.chainNonce, gaps: drift.gaps.length },
      "a lane's nonces are mended",
    );
    if (drift.next !== lane.nextNonce) await this.#moveCounter(lane, drift.next);
    for (const nonce of drift.gaps) await this.#fill(lane.payer, nonce);
  }

  /** The lowest gaps: what is above them cannot be mined earlier. */
  async #driftOf({ payer, chainNonce, nextNonce }: Observed): Promise<Drift | undefined> {
    const { db, tuning } = this.#options;
    const ofPayer = db.selectFrom("transactions").select("nonce").where("payer", "=", payer);
    const above = ofPayer.where("nonce", ">=", chainNonce);
    const highest = await above.orderBy("nonce", "desc").limit(1).executeTakeFirst();
    const next = Math.max(chainNonce, (highest?.nonce ?? -1) + 1);
    const end = Math.min(next, chainNonce + NONCES_SEEN);
    const between = end > chainNonce ? await above.where("nonce", "<", end).execute() : [];
    const held = new Set(between.map(({ nonce }) => nonce));
    const gaps: number[] = [];
    for (let nonce = chainNonce; nonce < end && gaps.length < tuning.maxInFlightPerLane; nonce++)
      if (!held.has(nonce)) gaps.push(nonce);
    return next === nextNonce && gaps.length === 0 ? undefined : { next, gaps };
  }

  /**
   * Most endpoints report the count; the store has no final transaction above it; and if it is far above the counter,
   * the chain shows the transaction that used its last nonce (gaps up to a wrong one would never all be filled),
   * unless nodes lack the states to find it.
   */
  async #isWitnessed({ payer, address, chainNonce, nextNonce }: Observed): Promise<boolean> {
    const { rpc, db } = this.#options;
    if ((await this.#agreedCount(address)) !== chainNonce) return false;
    if (chainNonce > nextNonce + NONCES_SEEN)
      return new UseOfNonce(rpc).find(address, chainNonce - 1).then(
        (use) => use !== undefined,
        (error: unknown) => lacksStates(error),
      );
    const final = await db
      .selectFrom("transactions")
      .select("nonce")
      .where("payer", "=", payer)
      .where("nonce", ">=", chainNonce)
      .where("state", "in", ["confirmed", "displaced"])
      .limit(1)
      .executeTakeFirst();
    return final === undefined;
  }

  /** The sender's transaction count as most of the endpoints that answer see it; undefined if they do not agree. */
  async #agreedCount(address: string): Promise<number | undefined> {
    const answers = await this.#options.rpc.callEverywhere("eth_getTransactionCount", [address, "latest"], countIn);
    const counts = answers.filter((answer) => typeof answer === "number");
    return counts.find((count) => counts.filter((other) => other === count).length * 2 > counts.length);
  }

  async #fill(payer: number, nonce: number): Promise<void> {
    const noop = await this.#options.transactions.beginNoop(payer, nonce);
    if (noop !== undefined) this.#options.monitor.watch(noop);
  }

  async #moveCounter({ payer, nextNonce }: Observed, to: number): Promise<void> {
    await this.#options.db
      .updateTable("lanes")
      .set({ next_nonce: to })
      .where("payer", "=", payer)
      .where("next_nonce", "=", nextNonce)
      .execute();
  }

  /**
   * The minimum balance of payers and the top-up target: the settings, or more if gas is expensive or a write has
   * requested more.
   */
  async #figures(): Promise<TopUpFigures> {
    const { db, fees, tuning } = this.#options;
    const { maxFeePerGas } = await fees.now();
    const wanted = await wantedBalance(db);
    const belowWei = largest(tuning.topUpBelowWei, tuning.topUpGas * maxFeePerGas, wanted);
    return { belowWei, toWei: largest(tuning.topUpToWei, 2n * belowWei) };
  }

  /** As far as the admin payer's balance goes, without what it has already promised: if need be to the minimum only. */
  async #topUp(lanes: readonly Observed[]): Promise<void> {
    const { db, transactions, monitor, log, tuning } = this.#options;
    const { belowWei, toWei } = await this.#figures();
    const poor = lanes.filter((lane) => lane.payer > 0 && !isDone(lane) && lane.balanceWei < belowWei);
    if (poor.length === 0) return;
    const open = await db
      .selectFrom("transactions")
      .select(["to_payer", "amount_wei"])
      .where("purpose", "=", "top_up")
      .where(TRANSACTION_IS_OPEN)
      .execute();
    const promised = open.reduce((sum, { amount_wei: amount }) => sum + BigInt(amount ?? 0), 0n);
    let leftWei = (lanes.find(({ payer }) => payer === 0)?.balanceWei ?? 0n) - promised;
    for (const { payer, balanceWei } of poor.filter((lane) => !open.some(({ to_payer: to }) => to === lane.payer))) {
      const wholeWei = toWei - balanceWei;
      // Less than the minimum lacks would have to be sent again and again.
      const possibleWei = leftWei > wholeWei ? wholeWei : largest(belowWei - balanceWei, leftWei / 2n);
      const amountWei = smallest(possibleWei, tuning.maxTopUpWei);
      if (leftWei <= amountWei) {
        const facts = { payer, balance: balanceWei.toString(), wanted: amountWei.toString() };
        log.error(facts, "a payer runs out of gas and the admin payer cannot top it up");
        continue;
      }
      leftWei -= amountWei;
      const row = await transactions.beginTopUp(payer, amountWei);
      if (row !== undefined) monitor.watch(row);
    }
  }
}

/** A draining lane pays for what it has begun. */
const isDone = ({ draining, nextNonce, chainNonce }: Observed): boolean => draining && nextNonce <= chainNonce;

/** Nodes that are no archives have lost what they were asked about. */
const lacksStates = (error: unknown): boolean =>
  error instanceof KeywrightError && error.cause instanceof RpcError && error.cause.failure === "stale";

const largest = (...values: readonly bigint[]): bigint => values.reduce((a, b) => (a > b ? a : b));
const smallest = (a: bigint, b: bigint): bigint => (a < b ? a : b);
