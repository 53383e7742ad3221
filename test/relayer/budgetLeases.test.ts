/** Leases that the relayer sends: while its database fails, and so many that an owner's writes could wait for them. */
import { setTimeout as sleep } from "node:timers/promises";
import { once } from "node:events";
import { expect } from "chai";
import pino from "pino";
import type { ExecutorAnswer, ExecutorRequest } from "../../protocol/executor";
import type { AccountId } from "../../protocol/ids";
import { BudgetLeases, type BudgetLeaseParts } from "../../relayer/budgetLeases";
import { AccountQueue } from "../../relayer/chain/submissions/accountQueue";
import type { SubmissionId, SubmitRequest } from "../../relayer/chain/types";
import { BudgetStore } from "../../relayer/store/budgets";
import { BUDGET } from "../support/budgetWorld";
import { openTestStore } from "../support/testStore";

const TUNING = { maxWaiting: 1_000, maxWaitingPerAccount: 64 };
type Lease = ExecutorAnswer<"nextLeases">["leases"][number];
const LEASE: Lease = {
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

/** Hands these out, one list after the other, and then none. */
class Leases {
  readonly outcomes: ExecutorRequest<"leaseOutcome">[] = [];
  readonly #lists: Lease[][];

  constructor(lists: Lease[][]) {
    this.#lists = [...lists];
  }

  call = (async (name: string, request: unknown, { signal }: { signal?: AbortSignal } = {}): Promise<unknown> => {
    if (name === "leaseOutcome") return void this.outcomes.push(request as ExecutorRequest<"leaseOutcome">);
    const leases = this.#lists.shift();
    if (leases === undefined && signal !== undefined) await once(signal, "abort");
    return { leases: leases ?? [] };
  }) as BudgetLeaseParts["executor"]["call"];
}

describe("the relayer's leases of budgets", () => {
  it("outlive a database that fails: the account's list lacks them, and nothing else", async () => {
    const store = await openTestStore({});
    await store.close();
    const executor = new Leases([[LEASE]]);
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

  for (const [managementWriteCents, expected] of [
    [0, ["noted", "sent"]],
    [1, ["paid", "noted", "sent"]],
  ] as const)
    it(`are in their account's list, once paid for, before they are sent: ${managementWriteCents} cents`, async () => {
      const executor = new Leases([[LEASE]]);
      const order: string[] = [];
      const reserveWrite = async (): Promise<void> => void order.push("paid");
      const leases = new BudgetLeases({
        chain: {
          submit: async ({ reserve }) => {
            await reserve?.("" as SubmissionId);
            return void order.push("sent") as never;
          },
        },
        credits: { reservations: { reserveWrite } } as never,
        executor,
        budgets: { note: async () => (await sleep(50), void order.push("noted")) },
        prices: { managementWriteCents, runSecondCents: 0 },
        log: pino({ level: "silent" }),
      });
      leases.start();
      for (let tries = 0; executor.outcomes.length === 0 && tries < 400; tries++) await sleep(10);
      await leases.stop();
      expect(order).to.deep.equal(expected);
    });

  describe("of one account", () => {
    const MANY = Array.from({ length: 70 }, (_, n) => ({ ...LEASE, id: `0x${String(n).padStart(64, "0")}` }));
    const OTHER = { ...LEASE, id: `0x${"0e".repeat(32)}`, accountId: `0x${"0e".repeat(32)}` };
    let queue: AccountQueue;
    let sent: string[];
    let executor: Leases;
    let leases: BudgetLeases;
    const start = (lists: Lease[][], maxWaitMs?: number): void => {
      queue = new AccountQueue(undefined as never, TUNING);
      sent = [];
      const submit = ({ accountId, idempotencyKey }: SubmitRequest) =>
        queue.inTurn(accountId, Date.now() + 60_000, async () => {
          sent.push(String(idempotencyKey));
          await sleep(20);
          return undefined as never;
        });
      // Those without an outcome are handed out again, as the keyholder does after a while.
      executor = new Leases(lists);
      const parts = {
        chain: { submit },
        credits: undefined as never,
        executor,
        budgets: { note: async () => undefined },
        prices: { managementWriteCents: 0, runSecondCents: 0 },
        log: pino({ level: "silent" }),
      };
      leases = new BudgetLeases(parts, maxWaitMs);
      leases.start();
    };
    const startMany = (): void => start([MANY, [...MANY.slice(0, 64), OTHER]]);
    afterEach(() => leases.stop());
    const until = async (isSo: () => boolean): Promise<void> => {
      for (let tries = 0; !isSo() && tries < 1_000; tries++) await sleep(5);
    };

    it("are sent one at a time: its owner's write waits for one of them, another account's for none", async () => {
      startMany();
      await until(() => sent.length >= 3);
      const before = sent.length;
      const inTurn = await queue.inTurn(LEASE.accountId as AccountId, Date.now() + 10_000, async () => sent.length);
      expect(inTurn - before).to.be.at.most(1);
      expect(sent.indexOf(`lease:${OTHER.id}`)).to.be.within(0, 2);
    });

    it("are sent once however often they are handed out, and refused where too many wait", async () => {
      startMany();
      await until(() => executor.outcomes.length === MANY.length + 1);
      const refused = executor.outcomes.filter(({ failed }) => failed?.code === "queue_full");
      expect(refused.map(({ id }) => id)).to.deep.equal(MANY.slice(64).map(({ id }) => id));
      expect(new Set(sent).size).to.equal(65);
      expect(sent.length).to.equal(65);
      expect(new Set(executor.outcomes.map(({ id }) => id)).size).to.equal(MANY.length + 1);
    });

    it("are not sent after those before them took too long: their runs have given up", async () => {
      start([MANY.slice(0, 10)], 30);
      await until(() => executor.outcomes.length === 10);
      const late = executor.outcomes.filter(({ failed }) => failed?.code === "timed_out");
      expect(late.length).to.be.within(7, 9);
      expect(sent.length).to.equal(10 - late.length);
    });

    it("are left to another relayer when this one stops", async () => {
      startMany();
      await until(() => sent.length >= 3);
      await leases.stop();
      const after = sent.length;
      await sleep(100);
      expect(sent.length).to.equal(after);
      expect(queue.waiting).to.equal(0);
    });
  });
});
