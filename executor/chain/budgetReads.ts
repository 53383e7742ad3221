/** The keyholder's reads of the contract `Budgets`: counters, and its leases among the contract's events. */
import { LEASED_TOPIC, BUDGETS, decodeUsedNow, encodeUsedNow, type Budget, type UsedNow } from "../../protocol/budgets";
import type { Address, Hash32 } from "../../protocol/ids";
import type { BudgetChain } from "../budgets/counter";
import type { LeaseDepth } from "../budgets/depth";
import type { Landed } from "../budgets/slices";
import type { Chain, Decided } from "./chain";
import type { Log } from "./rpc";

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

  time(): Promise<bigint> {
    return this.#chain.time(TIME_WITHIN_MS);
  }

  used(budget: Budget): Promise<UsedNow> {
    const read = (data: string): UsedNow & Decided => {
      const now = decodeUsedNow(data);
      return { ...now, decision: { blockNumber: now.blockNumber, blockTimestamp: now.timestamp } };
    };
    return this.#chain.ask({ to: this.#address, data: encodeUsedNow(budget), read });
  }

  async leases(counter: Hash32, ids: readonly Hash32[]): Promise<readonly Landed[]> {
    const { confirmations, final, searched } = this.#depth;
    const { found } = await this.#chain.agreed(async (endpoint, block) => {
      const head = await endpoint.blockNumber(block);
      const from = head > BigInt(searched) ? head - BigInt(searched) : 0n;
      const to = head - BigInt(confirmations - 1);
      const logs = to < from ? [] : await endpoint.logs(this.#address, [LEASED_TOPIC, ids, counter], from, to);
      const isFinal = (log: Log): boolean => BigInt(log.blockNumber) + BigInt(final) <= head;
      return { blockNumber: head, found: logs.flatMap((log) => this.#landed(log, counter, isFinal(log))) };
    });
    return found;
  }

  /** Endpoints may answer with more than they were asked for. */
  #landed({ address, topics, data }: Log, counter: Hash32, isFinal: boolean): Landed[] {
    const parsed = address.toLowerCase() === this.#address.toLowerCase() ? BUDGETS.parseLog({ topics, data }) : null;
    if (parsed?.name !== "Leased" || parsed.args.counter !== counter) return [];
    const { id, amount, used } = parsed.args as unknown as { id: Hash32; amount: bigint; used: bigint };
    return [{ id, amount, used, isFinal }];
  }
}
