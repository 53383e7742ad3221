/**
 * Maintains the lanes for all instances: the set of payers, their registration with the contract, their gas, and nonce
 * counters without gaps or drift.
 */
import { sql } from "kysely";
import type { Logger } from "pino";
import type { Address } from "../../../protocol/ids";
import type { Db } from "../../store/database";
import type { TransactionMonitor } from "../submissions/transactionMonitor";
import { wantedBalance, wantedPayers } from "./wanted";
import type { FeeOracle } from "./fees";
import type { Transactions } from "../submissions/transactions";
import type { RpcClient } from "../rpc/client";
import type { ChainTuning } from "../settings";
import { TRANSACTION_IS_OPEN } from "../submissions/states";
import type { ExecutorPort } from "../types";

export interface PayerMaintenanceOptions {
  readonly db: Db;
  readonly rpc: RpcClient;
  readonly executor: ExecutorPort;
  readonly transactions: Transactions;
  readonly fees: FeeOracle;
  readonly monitor: TransactionMonitor;
  readonly log: Logger;
  readonly tuning: ChainTuning;
  readonly apiPayers: () => Promise<readonly Address[]>;
}

interface Observed {
  readonly payer: number;
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
    const figures = await this.#figures();
    for (const lane of lanes) {
      await this.#repairNonces(lane);
      await this.#topUp(lane, figures);
    }
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
      const next_nonce = Number(await this.#options.rpc.call<string>("eth_getTransactionCount", [address, "latest"]));
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
      lanes.map(async ({ payer, address, next_nonce: nextNonce, draining }) => {
        const [count, balance] = await rpc.callTogether([
          { method: "eth_getTransactionCount", params: [address, "latest"] },
          { method: "eth_getBalance", params: [address, "latest"] },
        ]);
        const balanceWei = BigInt(balance as string);
        await db
          .updateTable("lanes")
          .set({
            registered: registered.has(address as Address),
            balance_wei: balanceWei.toString(),
            observed_at: sql`now()`,
          })
          .where("payer", "=", payer)
          .execute();
        return { payer, nextNonce, chainNonce: Number(count), balanceWei, draining };
      }),
    );
  }

  /**
   * Counter behind the chain: the payer was used elsewhere, or the store is an older copy; the counter is raised.
   * Counter ahead, with nonces of no transaction: it is lowered past those at the top, others are filled with no-ops.
   * Only when seen twice, since a node may lag.
   */
  async #repairNonces(lane: Observed): Promise<void> {
    const held = await this.#heldNonces(lane);
    const gaps: number[] = [];
    for (let nonce = lane.chainNonce; nonce < lane.nextNonce; nonce++) if (!held.has(nonce)) gaps.push(nonce);
    const suspicion = lane.chainNonce > lane.nextNonce ? `behind ${lane.chainNonce}` : gaps.join();
    if (suspicion === "" || this.#suspected.get(lane.payer) !== suspicion) {
      this.#suspected.set(lane.payer, suspicion);
      return;
    }
    this.#suspected.delete(lane.payer);
    this.#options.log.warn(
      { payer: lane.payer, nextNonce: lane.nextNonce, chainNonce: lane.chainNonce, gaps: gaps.length },
      "a lane's nonces are mended",
    );
    if (lane.chainNonce > lane.nextNonce) await this.#moveCounter(lane, lane.chainNonce);
    else await this.#closeGaps(lane, gaps);
  }

  async #heldNonces({ payer, chainNonce }: Observed): Promise<ReadonlySet<number | null>> {
    const rows = await this.#options.db
      .selectFrom("transactions")
      .select("nonce")
      .where("payer", "=", payer)
      .where("nonce", ">=", chainNonce)
      .execute();
    return new Set(rows.map(({ nonce }) => nonce));
  }

  async #closeGaps(lane: Observed, gaps: readonly number[]): Promise<void> {
    const { transactions, monitor } = this.#options;
    let top = lane.nextNonce;
    const inside = [...gaps];
    while (inside.at(-1) === top - 1) {
      inside.pop();
      top -= 1;
    }
    if (top < lane.nextNonce) await this.#moveCounter(lane, top);
    for (const nonce of inside) {
      const noop = await transactions.beginNoop(lane.payer, nonce);
      if (noop !== undefined) monitor.watch(noop);
    }
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

  async #topUp({ payer, balanceWei, draining }: Observed, { belowWei, toWei }: TopUpFigures): Promise<void> {
    const { db, transactions, monitor, log, tuning } = this.#options;
    if (payer === 0 || draining || balanceWei >= belowWei) return;
    const admin = await db.selectFrom("lanes").select("balance_wei").where("payer", "=", 0).executeTakeFirst();
    const amountWei = smallest(toWei - balanceWei, tuning.maxTopUpWei);
    if (BigInt(admin?.balance_wei ?? 0) <= amountWei) {
      log.error(
        { payer, balanceWei: balanceWei.toString(), wanted: amountWei.toString() },
        "a payer runs out of gas and the admin payer cannot top it up",
      );
      return;
    }
    const open = await db
      .selectFrom("transactions")
      .select("id")
      .where("to_payer", "=", payer)
      .where(TRANSACTION_IS_OPEN)
      .executeTakeFirst();
    const row = open === undefined ? await transactions.beginTopUp(payer, amountWei) : undefined;
    if (row !== undefined) monitor.watch(row);
  }
}

const largest = (...values: readonly bigint[]): bigint => values.reduce((a, b) => (a > b ? a : b));
const smallest = (a: bigint, b: bigint): bigint => (a < b ? a : b);
