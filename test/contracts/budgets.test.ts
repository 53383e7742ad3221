// Budgets
// ├── every caller tried: only API payers lease, removed ones for ten minutes more, the admin never
// ├── a counter of its own for each account, action, name, window and index, and for no other difference
// ├── the limit holds to the unit, for each caller's own limit, up to 2^128 - 1
// ├── a window starts and ends with the block's time, to the second, at zero
// ├── a stolen payer uses budgets up and never enlarges them
// ├── events tell every lease, and what the counter is after it
// └── histories: the counters are those of a model, only grow, and never exceed the largest limit stated
import { loadFixture, time } from "@nomicfoundation/hardhat-network-helpers";
import { expect } from "chai";
import fc from "fast-check";
import { ethers } from "hardhat";
import type { HardhatEthersSigner } from "@nomicfoundation/hardhat-ethers/signers";
import type { AccountManager, Budgets } from "../../typechain-types";
import { count, SEED } from "../support/counts";

const HOUR = 0;
const DAY = 1;
const SECONDS = [3_600n, 86_400n] as const;
const MAX = 2n ** 128n - 1n;
const [ACCOUNT, OTHER_ACCOUNT] = [ethers.id("account"), ethers.id("other account")] as [string, string];
const [ACTION, OTHER_ACTION] = [ethers.id("action"), ethers.id("other action")] as [string, string];
const NAME = ethers.encodeBytes32String("usdc-daily");

async function deployed() {
  const [admin, payer, otherPayer, owner, stranger] = (await ethers.getSigners()) as [
    HardhatEthersSigner,
    HardhatEthersSigner,
    HardhatEthersSigner,
    HardhatEthersSigner,
    HardhatEthersSigner,
  ];
  const forwarder = await ethers.deployContract("ERC2771Forwarder", ["Keywright Forwarder"]);
  const manager = (await ethers.deployContract("AccountManager", [
    admin.address,
    0,
    forwarder,
    ethers.id("root"),
  ])) as unknown as AccountManager;
  for (const each of [payer, otherPayer]) await manager.addApiPayer(each.address);
  const budgets = (await ethers.deployContract("Budgets", [await manager.getAddress()])) as unknown as Budgets;
  return { manager, budgets, forwarder, admin, payer, otherPayer, owner, stranger };
}

interface Terms {
  account?: string;
  action?: string;
  name?: string;
  window?: number;
  amount?: bigint;
  limit?: bigint;
  id?: string;
}
const lease = (budgets: Budgets, by: HardhatEthersSigner, terms: Terms = {}) => {
  const { account = ACCOUNT, action = ACTION, name = NAME, window = DAY } = terms;
  const { amount = 10n, limit = 100n, id = ethers.id("lease") } = terms;
  return budgets.connect(by).lease(account, action, name, window, amount, limit, id);
};
const used = async (budgets: Budgets, { account = ACCOUNT, action = ACTION, name = NAME, window = DAY }: Terms = {}) =>
  (await budgets.usedNow(account, action, name, window)).used;

/** What the contract must do. */
class Counters {
  readonly #counters = new Map<string, { used: bigint; largest: bigint }>();

  /** The error, if it must refuse. */
  lease(counter: string, amount: bigint, limit: bigint): string | undefined {
    const { used, largest } = this.#counters.get(counter) ?? { used: 0n, largest: 0n };
    if (used + amount > limit) return "BudgetExceeded";
    this.#counters.set(counter, { used: used + amount, largest: limit > largest ? limit : largest });
    return undefined;
  }
  used = (counter: string): bigint => this.#counters.get(counter)?.used ?? 0n;
  /** The largest limit that was stated. */
  largest = (counter: string): bigint => this.#counters.get(counter)?.largest ?? 0n;
}

describe("Budgets", () => {
  it("lets API payers lease, and nobody else: every caller tried", async () => {
    const { manager, budgets, admin, payer, otherPayer, owner, stranger } = await loadFixture(deployed);
    await manager.connect(owner).newChainSecuredAccount("owner", "");
    for (const caller of [admin, owner, stranger]) {
      await expect(lease(budgets, caller))
        .to.be.revertedWithCustomError(budgets, "NotAuthorized")
        .withArgs(caller.address);
    }
    for (const caller of [payer, otherPayer]) await lease(budgets, caller);
    expect(await used(budgets)).to.equal(20n);
    expect(await budgets.accountManager()).to.equal(await manager.getAddress());
  });

  it("counts a payer that was removed as one for ten minutes after it was asked about, no second longer", async () => {
    const { manager, budgets, payer } = await loadFixture(deployed);
    await lease(budgets, payer);
    const asked = BigInt(await time.latest());
    await manager.removeApiPayer(payer.address);
    await time.setNextBlockTimestamp(asked + 599n);
    await lease(budgets, payer);
    await time.setNextBlockTimestamp(asked + 600n);
    await expect(lease(budgets, payer)).to.be.revertedWithCustomError(budgets, "NotAuthorized");
    await manager.addApiPayer(payer.address);
    await lease(budgets, payer);
  });

  it("knows a payer by isApiPayer: from its time on, until it is removed", async () => {
    const { manager, budgets, payer, stranger, admin } = await loadFixture(deployed);
    const delayed = (await ethers.deployContract("AccountManager", [
      admin.address,
      1_000,
      await ethers.deployContract("ERC2771Forwarder", ["x"]),
      ethers.id("root"),
    ])) as unknown as AccountManager;
    await delayed.addApiPayer(payer.address);
    await delayed.connect(payer).newAccount(1, true, "a", "", stranger.address);
    await delayed.addApiPayer(stranger.address);
    const own = (await ethers.deployContract("Budgets", [await delayed.getAddress()])) as unknown as Budgets;
    expect(await delayed.isApiPayer(stranger.address)).to.equal(false);
    await expect(lease(own, stranger)).to.be.revertedWithCustomError(budgets, "NotAuthorized");
    await time.increase(1_000);
    expect(await delayed.isApiPayer(stranger.address)).to.equal(true);
    await lease(own, stranger);
    await delayed.removeApiPayer(stranger.address);
    expect(await delayed.isApiPayer(stranger.address)).to.equal(false);
    expect(await manager.isApiPayer(ethers.ZeroAddress)).to.equal(false);
  });

  it("counts each account, action, name, window and index apart", async () => {
    const { budgets, payer } = await loadFixture(deployed);
    const others: Terms[] = [
      { account: OTHER_ACCOUNT },
      { action: OTHER_ACTION },
      { name: ethers.encodeBytes32String("usdc-dailz") },
      { window: HOUR },
    ];
    await lease(budgets, payer, { amount: 100n });
    await expect(lease(budgets, payer, { amount: 1n })).to.be.revertedWithCustomError(budgets, "BudgetExceeded");
    for (const other of others) {
      expect(await used(budgets, other)).to.equal(0n);
      await lease(budgets, payer, { ...other, amount: 100n });
    }
    await expect(lease(budgets, payer, { amount: 1n, id: ethers.id("other") })).to.be.revertedWithCustomError(
      budgets,
      "BudgetExceeded",
    );
  });

  it("holds every caller to the limit it states, to the unit", async () => {
    const { budgets, payer, otherPayer } = await loadFixture(deployed);
    await lease(budgets, payer, { amount: 60n, limit: 100n });
    await expect(lease(budgets, otherPayer, { amount: 41n, limit: 100n }))
      .to.be.revertedWithCustomError(budgets, "BudgetExceeded")
      .withArgs(60n, 41n, 100n);
    await expect(lease(budgets, otherPayer, { amount: 1n, limit: 60n })).to.be.revertedWithCustomError(
      budgets,
      "BudgetExceeded",
    );
    await lease(budgets, otherPayer, { amount: 40n, limit: 100n });
    await lease(budgets, payer, { amount: 1n, limit: 101n });
    await expect(lease(budgets, payer, { amount: 0n, limit: 100n })).to.be.revertedWithCustomError(
      budgets,
      "BudgetExceeded",
    );
    expect(await used(budgets)).to.equal(101n);
  });

  it("counts to 2^128 - 1 without overflow", async () => {
    const { budgets, payer } = await loadFixture(deployed);
    await lease(budgets, payer, { amount: MAX - 1n, limit: MAX });
    await expect(lease(budgets, payer, { amount: MAX, limit: MAX }))
      .to.be.revertedWithCustomError(budgets, "BudgetExceeded")
      .withArgs(MAX - 1n, MAX, MAX);
    await lease(budgets, payer, { amount: 1n, limit: MAX });
    expect(await used(budgets)).to.equal(MAX);
  });

  for (const window of [HOUR, DAY]) {
    it(`starts ${window === HOUR ? "an hour" : "a day"} with the block's time, to the second`, async () => {
      const { budgets, payer } = await loadFixture(deployed);
      const length = SECONDS[window] ?? 0n;
      const start = (BigInt(await time.latest()) / length + 2n) * length;
      await time.setNextBlockTimestamp(start);
      await lease(budgets, payer, { window, amount: 70n });
      await time.setNextBlockTimestamp(start + length - 1n);
      await lease(budgets, payer, { window, amount: 30n });
      await time.setNextBlockTimestamp(start + length);
      await lease(budgets, payer, { window, amount: 100n });
      const index = start / length;
      expect(await budgets.usedIn(ACCOUNT, ACTION, NAME, window, index)).to.equal(100n);
      expect(await budgets.usedIn(ACCOUNT, ACTION, NAME, window, index + 1n)).to.equal(100n);
      expect(await budgets.usedIn(ACCOUNT, ACTION, NAME, window, index - 1n)).to.equal(0n);
      const now = await budgets.usedNow(ACCOUNT, ACTION, NAME, window);
      const block = await ethers.provider.getBlock("latest");
      expect([now.used, now.timestamp, now.blockNumber]).to.deep.equal([
        100n,
        BigInt(block?.timestamp ?? 0),
        BigInt(block?.number ?? 0),
      ]);
    });
  }

  it("lets a stolen payer use budgets up, and never enlarge them", async () => {
    const { budgets, payer, otherPayer } = await loadFixture(deployed);
    await lease(budgets, payer, { amount: 50n });
    await lease(budgets, otherPayer, { amount: MAX - 50n, limit: MAX });
    for (const amount of [0n, 1n])
      await expect(lease(budgets, payer, { amount })).to.be.revertedWithCustomError(budgets, "BudgetExceeded");
    // Nothing else writes: the ABI has one function that is not a view.
    const writes = budgets.interface.fragments.filter(
      (one) => one.type === "function" && !(one as unknown as { constant: boolean }).constant,
    );
    expect(writes.map((one) => (one as unknown as { name: string }).name)).to.deep.equal(["lease"]);
  });

  it("tells every lease and the counter after it", async () => {
    const { budgets, payer } = await loadFixture(deployed);
    const index = BigInt(await time.latest()) / 86_400n;
    const counter = await budgets.counterOf(ACCOUNT, ACTION, NAME, DAY, index);
    const word = ethers.AbiCoder.defaultAbiCoder();
    expect(counter).to.equal(
      ethers.keccak256(
        word.encode(["uint256", "bytes32", "bytes32", "uint8", "uint256"], [ACCOUNT, ACTION, NAME, DAY, index]),
      ),
    );
    await lease(budgets, payer, { amount: 7n });
    await expect(lease(budgets, payer, { amount: 5n, id: ethers.id("second") }))
      .to.emit(budgets, "Leased")
      .withArgs(ethers.id("second"), counter, 5n, 12n);
  });

  it("keeps the counters of a model through random histories", async () => {
    const step = fc.record({
      by: fc.nat({ max: 2 }),
      account: fc.constantFrom(ACCOUNT, OTHER_ACCOUNT),
      window: fc.constantFrom(HOUR, DAY),
      amount: fc.bigInt({ min: 0n, max: 60n }),
      limit: fc.bigInt({ min: 0n, max: 150n }),
      later: fc.constantFrom(1, 1, 1, 1_800, 3_600, 86_400),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20 }), async (steps) => {
        const { budgets, payer, otherPayer, stranger } = await loadFixture(deployed);
        const callers = [payer, otherPayer, stranger] as const;
        const model = new Counters();
        for (const { by, account, window, amount, limit, later } of steps) {
          const now = BigInt(await time.latest()) + BigInt(later);
          await time.setNextBlockTimestamp(now);
          const index = now / (SECONDS[window] ?? 1n);
          const counter = `${account} ${window} ${index}`;
          const error = by === 2 ? "NotAuthorized" : model.lease(counter, amount, limit);
          const sent = lease(budgets, callers[by] ?? stranger, { account, window, amount, limit });
          if (error === undefined) await sent;
          else await expect(sent).to.be.revertedWithCustomError(budgets, error);
          const after = await budgets.usedIn(account, ACTION, NAME, window, index);
          expect(after, counter).to.equal(model.used(counter));
          expect(after <= model.largest(counter), counter).to.equal(true);
        }
      }),
      { numRuns: count(10, 200), seed: SEED },
    );
  });
});
