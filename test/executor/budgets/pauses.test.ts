/** Leases on a real chain when nobody spends for long: what was leased is found again, however far it went on. */
import { expect } from "chai";
import { Chain } from "../../../executor/chain/chain";
import { BudgetReads } from "../../../executor/chain/budgetReads";
import { Counter, type Carrier } from "../../../executor/budgets/counter";
import { leaseDepthOf } from "../../../executor/budgets/depth";
import {
  budgetsAddressOf,
  encodeLease,
  encodeUsedNow,
  decodeUsedNow,
  type LeaseTerms,
} from "../../../protocol/budgets";
import type { Address } from "../../../protocol/ids";
import { BUDGET, PAYER } from "../../support/budgetWorld";
import { startTestChain, type TestChain } from "../../support/chain";

const CHAIN_ID = 31_337n;
const DAY = 86_400;
const LIMIT = 1_000n;
const MINUTES = 60_000;

describe("budgets after a pause", () => {
  let node: TestChain;
  let chain: Chain;
  let address: Address;

  before(async () => {
    node = await startTestChain();
    address = budgetsAddressOf(node.contractAddress as Address);
    await (await node.contract.addApiPayer(await node.deployer.getAddress())).wait();
    // Far from any window's end.
    const { timestamp = 0 } = (await node.provider.getBlock("latest")) ?? {};
    await node.provider.send("evm_setNextBlockTimestamp", [(Math.floor(timestamp / DAY) + 1) * DAY]);
    await mine(1);
    const options = { quorum: 1, timeoutMs: 5_000, maxHeadAgeSeconds: 0, chainId: CHAIN_ID };
    chain = new Chain({ ...options, rpcUrls: [node.rpcUrl], contractAddress: node.contractAddress as Address });
  });
  after(async () => {
    await chain?.close();
    await node?.stop();
  });

  const mine = (blocks: number): Promise<unknown> => node.provider.send("anvil_mine", [`0x${blocks.toString(16)}`]);
  const send = async (terms: LeaseTerms): Promise<void> =>
    void (await (await node.deployer.sendTransaction({ to: address, data: encodeLease(terms) })).wait());

  /** A counter of its own, whose clock the test moves on. */
  function counterOf(name: string, carrier: Carrier, confirmations?: number) {
    const clock = {
      passed: 0,
      now: () => performance.now() + clock.passed,
      sleep: () => mine(1).then(() => undefined),
    };
    const budget = { ...BUDGET, name, window: "day" as const };
    const reads = new BudgetReads(chain, address, leaseDepthOf(CHAIN_ID, confirmations));
    const used = async (): Promise<bigint> =>
      decodeUsedNow(await node.provider.call({ to: address, data: encodeUsedNow(budget) })).used;
    return { clock, used, counter: new Counter(budget, reads, carrier, clock) };
  }

  it("go on with a lease that was not final when it was last looked at", async () => {
    const { clock, used, counter } = counterOf("rest", { send });
    expect(await counter.spend(PAYER, { amount: 10n, limit: LIMIT })).to.equal(990n);
    for (const blocks of [200, 1_000]) {
      await mine(blocks);
      clock.passed += 60 * MINUTES;
      await counter.spend(PAYER, { amount: 10n, limit: LIMIT });
      expect(await used()).to.equal(125n);
    }
  });

  it("spend of a lease that came after the run which had asked for it", async () => {
    const over = new AbortController();
    const { clock, used, counter } = counterOf("late", { send: async (terms) => (over.abort(), send(terms)) }, 12);
    const first = counter.spend(PAYER, { amount: 10n, limit: LIMIT, over: over.signal });
    expect(await first.catch((error: Error) => error.message)).to.equal("the run is over");
    for (let blocks = 0; (await used()) === 0n && blocks < 100; blocks++) await mine(1);
    await mine(400);
    clock.passed += 60 * MINUTES;
    expect(await counter.spend(PAYER, { amount: 10n, limit: LIMIT })).to.equal(990n);
    expect(await used()).to.equal(125n);
  });

  it("spend of a lease that was carried out in the next window, where it leaves no room for another", async () => {
    const carried = new Set<string>();
    const onceLater: Carrier = {
      send: async (terms) => {
        if (carried.has(terms.id)) return;
        carried.add(terms.id);
        const { timestamp = 0 } = (await node.provider.getBlock("latest")) ?? {};
        await node.provider.send("evm_setNextBlockTimestamp", [(Math.floor(timestamp / DAY) + 1) * DAY]);
        await send(terms);
      },
    };
    for (const confirmations of [1, 3]) {
      const { used, counter } = counterOf(`edge ${confirmations}`, onceLater, confirmations);
      expect(await counter.spend(PAYER, { amount: 600n, limit: LIMIT })).to.equal(400n);
      expect(await used()).to.equal(600n);
    }
    expect(carried.size).to.equal(2);
  });

  it("say at once that a window is used up, whatever the window before has asked for", async () => {
    const over = new AbortController();
    const carriage = { isWithheld: true };
    const carrier: Carrier = {
      send: async (terms) => {
        if (!carriage.isWithheld) return send(terms);
        over.abort();
      },
    };
    const { used, counter } = counterOf("withheld at the edge", carrier);
    await counter.spend(PAYER, { amount: 600n, limit: LIMIT, over: over.signal }).catch(() => undefined);
    carriage.isWithheld = false;
    const { timestamp = 0 } = (await node.provider.getBlock("latest")) ?? {};
    await node.provider.send("evm_setNextBlockTimestamp", [(Math.floor(timestamp / DAY) + 1) * DAY]);
    await mine(1);
    expect(await counter.spend(PAYER, { amount: 900n, limit: LIMIT })).to.equal(100n);
    const before = await node.provider.getBlockNumber();
    const refused = await counter.spend(PAYER, { amount: 200n, limit: LIMIT }).catch((error: Error) => error.message);
    expect(refused).to.contain("100 of 1000 are left");
    expect([await used(), (await node.provider.getBlockNumber()) - before]).to.deep.equal([900n, 0]);
  });

  it("lease anew, after some minutes, where nothing came", async () => {
    const over = new AbortController();
    const sent: LeaseTerms[] = [];
    const withheld: Carrier = {
      send: async (terms) => {
        sent.push(terms);
        if (sent.length === 1) return over.abort();
        await send(terms);
      },
    };
    const { clock, used, counter } = counterOf("never", withheld);
    await counter.spend(PAYER, { amount: 10n, limit: LIMIT, over: over.signal }).catch(() => undefined);
    clock.passed += 6 * MINUTES;
    expect(await counter.spend(PAYER, { amount: 10n, limit: LIMIT })).to.equal(990n);
    expect([sent.length, await used()]).to.deep.equal([2, 125n]);
  });
});
