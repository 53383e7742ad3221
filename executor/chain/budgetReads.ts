/** The keyholder's reads of the contract `Budgets`: counters, and its leases among the contract's events. */
import { LEASED_TOPIC, BUDGETS, counterOf, decodeUsedNow, encodeUsedNow } from "../../protocol/budgets";
import type { Budget, UsedNow } from "../../protocol/budgets";
import type { Address, Hash32 } from "../../protocol/ids";
import type { BudgetChain, Found } from "../budgets/counter";
import type { LeaseDepth } from "../budgets/depth";
import type { Landed } from "../budgets/slices";
import type { Chain, Decided } from "./chain";
import type { Log } from "./rpc";
import { sharedRead } from "./sharedReads";

/** How old the chain's time may be: as long as a permission counts. */
const TIME_WITHIN_MS = 1_000;

export class BudgetReads implements BudgetChain {
  readonly #chain: Pick<Chain, "ask" | "agreed" | "time">;
  readonly #address: Address;
  readonly #depth: LeaseDepth;

  constructor(chain: Pick<Chain, "ask" | "agreed" | "time">, address: Address, depth: LeaseDepth) {
    this.#chain = chain;
    this.#address = address;
    this.#depth = depth;
  }

  get patienceMs(): number {
    return this.#depth.patienceMs;
  }

  time(): Promise<bigint> {
    return this.#chain.time(TIME_WITHIN_MS);
  }

  used(budget: Budget): Promise<UsedNow> {
    const read = (data: string): UsedNow & Decided => {
      const now = decodeUsedNow(data);
      return { ...now, decision: { blockNumber: now.blockNumber, blockTimestamp: now.timestamp } };
    };
    const question = { to: this.#address, data: encodeUsedNow(budget), read };
    return sharedRead(budget.account, undefined, () => this.#chain.ask(question));
  }

  leases(budget: Budget, index: bigint, ids: readonly Hash32[], since?: bigint): Promise<Found> {
    return sharedRead(budget.account, undefined, () => this.#leases(counterOf(budget, index), ids, since));
  }

  async #leases(counter: Hash32, ids: readonly Hash32[], since?: bigint): Promise<Found> {
    const { confirmations, final } = this.#depth;
    const { blockNumber: head, leases } = await this.#chain.agreed(async (endpoint, block) => {
      const dated = await endpoint.dated(block);
      const newest = dated.blockNumber;
      const ranges = this.#searchedAt(newest, newest - BigInt(confirmations - 1), since);
      const topics = [LEASED_TOPIC, ids, counter];
      const logs = await Promise.all(ranges.map(([from, to]) => endpoint.logs(this.#address, topics, from, to)));
      const isFinal = (log: Log): boolean => BigInt(log.blockNumber) + BigInt(final) <= newest;
      return { ...dated, leases: logs.flat().flatMap((log) => this.#landed(log, counter, isFinal(log))) };
    });
    return { head, leases };
  }

  /**
   * The newest blocks, and those around the last look if it is longer ago: what was not final then lies not deeper
   * below that head, and what was awaited came soon after it. Endpoints refuse longer ranges.
   */
  #searchedAt(head: bigint, to: bigint, since = head): (readonly [bigint, bigint])[] {
    const [final, searched] = [BigInt(this.#depth.final), BigInt(this.#depth.searched)];
    const newest = atLeast0(head - searched);
    const earlier = atLeast0(since - final);
    const around: readonly [bigint, bigint] = [earlier, min(earlier + searched, newest - 1n)];
    return [around, [newest, to] as const].filter(([from, until]) => from <= until);
  }

  /** Endpoints may answer with more than they were asked for. */
  #landed({ address, topics, data }: Log, counter: Hash32, isFinal: boolean): Landed[] {
    const parsed = address.toLowerCase() === this.#address.toLowerCase() ? BUDGETS.parseLog({ topics, data }) : null;
    if (parsed?.name !== "Leased" || parsed.args.counter !== counter) return [];
    const { id, amount, used } = parsed.args as unknown as { id: Hash32; amount: bigint; used: bigint };
    return [{ id, amount, used, isFinal }];
  }
}

const atLeast0 = (block: bigint): bigint => (block > 0n ? block : 0n);
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
