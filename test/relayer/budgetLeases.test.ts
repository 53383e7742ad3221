/** Leases that the relayer sends, while its database fails. */
import { setTimeout as sleep } from "node:timers/promises";
import { once } from "node:events";
import { expect } from "chai";
import pino from "pino";
import type { ExecutorAnswer, ExecutorRequest } from "../../protocol/executor";
import { BudgetLeases, type BudgetLeaseParts } from "../../relayer/budgetLeases";
import { BudgetStore } from "../../relayer/store/budgets";
import { BUDGET } from "../support/budgetWorld";
import { openTestStore } from "../support/testStore";

const LEASE: ExecutorAnswer<"nextLeases">["leases"][number] = {
  id: `0x${"1d".repeat(32)}`,
  accountId: BUDGET.account,
  actionHash: BUDGET.action,
  cid: "QmWfVY9y3xjsixTgbd9AorQxH7VtMpzfx2HaWtsoUYecaX",
  name: "usdc",
  window: "day",
  amount: "1",
  limit: "8",
  keyId: BUDGET.account,
  isAccountKey: true,
  capCents: "0",
};

/** Has one lease to send, once. */
class OneLease {
  readonly outcomes: ExecutorRequest<"leaseOutcome">[] = [];
  #isAsked = false;

  call = (async (name: string, request: unknown, { signal }: { signal?: AbortSignal } = {}): Promise<unknown> => {
    if (name === "leaseOutcome") return void this.outcomes.push(request as ExecutorRequest<"leaseOutcome">);
    const leases = this.#isAsked ? [] : [LEASE];
    if (this.#isAsked && signal !== undefined) await once(signal, "abort");
    this.#isAsked = true;
    return { leases };
  }) as BudgetLeaseParts["executor"]["call"];
}

describe("the relayer's leases of budgets", () => {
  it("outlive a database that fails: the account's list lacks them, and nothing else", async () => {
    const store = await openTestStore({});
    await store.close();
    const executor = new OneLease();
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", note);
    const leases = new BudgetLeases({
      chain: { submit: async () => (await sleep(50), undefined) as never },
      credits: undefined as never,
      executor,
      budgets: new BudgetStore(store.db),
      prices: { managementWriteCents: 0, runSecondCents: 0 },
      log: pino({ level: "silent" }),
    });
    leases.start();
    for (let tries = 0; executor.outcomes.length === 0 && tries < 400; tries++) await sleep(10);
    await leases.stop();
    process.off("unhandledRejection", note);
    expect(unhandled).to.deep.equal([]);
    expect(executor.outcomes).to.deep.equal([{ id: LEASE.id }]);
  });

  it("are in their account's list before the run that waits for them goes on", async () => {
    const executor = new OneLease();
    const told: number[] = [];
    const leases = new BudgetLeases({
      chain: { submit: async () => undefined as never },
      credits: undefined as never,
      executor,
      budgets: { note: async () => (await sleep(50), void told.push(executor.outcomes.length)) },
      prices: { managementWriteCents: 0, runSecondCents: 0 },
      log: pino({ level: "silent" }),
    });
    leases.start();
    for (let tries = 0; (executor.outcomes.length === 0 || told.length === 0) && tries < 400; tries++) await sleep(10);
    await leases.stop();
    expect(told).to.deep.equal([0]);
  });
});
