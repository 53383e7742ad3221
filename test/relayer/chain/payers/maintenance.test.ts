/** Payers' balances follow the gas price, and `/ready` reports when they do not. */
import { expect } from "chai";
import { parseEther, toBeHex } from "ethers";
import type { AccountId } from "../../../../protocol/ids";
import { wantPayers } from "../../../../relayer/chain/payers/wanted";
import type { Chain } from "../../../../relayer/chain/types";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount, request } from "../../../support/chainBed";
import { refusal } from "../../../support/refusal";

const GWEI = 10n ** 9n;

describe("payer balances and gas prices", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let chain: Chain;
  let account: AccountId;
  before(async () => {
    bed = await ChainBed.start({ payers: 1 });
    ({ chain } = await bed.open());
    account = freshAccountId();
    await chain.submit(newAccount(account));
  });
  after(() => bed?.stop());
  beforeEach(async () => {
    await bed.store.db.deleteFrom("chain_settings").where("name", "=", "wanted_balance").execute();
    await bed.setBalance(0, parseEther("1000"));
    await bed.setBalance(1, parseEther("100"));
    await baseFee(GWEI);
    await eventually("the payers are seen", async () =>
      (await chain.stats()).lanes.every(({ balanceWei }) => balanceWei > parseEther("99")),
    );
  });

  async function baseFee(wei: bigint): Promise<void> {
    await bed.provider.send("anvil_setNextBlockBaseFeePerGas", [toBeHex(wei).replace(/^0x0+/, "0x")]);
    await bed.mine();
  }

  it("a payer is topped up by the gas price, not to a fixed amount", async () => {
    await bed.setBalance(1, parseEther("0.05"));
    await baseFee(400n * GWEI);
    expect((await chain.submit(addGroup(account, "while gas is expensive"))).result.group_id).to.match(/^\d+$/);
    await eventually(
      "the payer has gas for many more",
      async () => (await bed.provider.getBalance(bed.executor.wallet(1).address)) > parseEther("1"),
    );
  });

  it("payers are topped up as far as the admin payer's balance goes; the others wait", async () => {
    const several = await ChainBed.start({ payers: 3 });
    try {
      await several.open();
      for (const payer of [1, 2, 3]) await several.setBalance(payer, parseEther("0.05"));
      await several.setBalance(0, parseEther("2.5"));
      await several.provider.send("anvil_setNextBlockBaseFeePerGas", [toBeHex(400n * GWEI).replace(/^0x0+/, "0x")]);
      await several.mine();
      const toppedUp = async (): Promise<number> => {
        const balances = [1, 2, 3].map((payer) => several.provider.getBalance(several.executor.wallet(payer).address));
        return (await Promise.all(balances)).filter((balance) => balance > parseEther("0.9")).length;
      };
      await eventually("two have gas", async () => (await toppedUp()) === 2);
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      const begun = await several.store.db
        .selectFrom("transactions")
        .where("purpose", "=", "top_up")
        .selectAll()
        .execute();
      expect(begun.map(({ state }) => state)).to.deep.equal(["mined", "mined"]);
      await several.setBalance(0, parseEther("100"));
      await eventually("so has the third", async () => (await toppedUp()) === 3);
    } finally {
      await several.stop();
    }
  });

  it("/ready is red while no payer can pay for a write, and such a write spends nothing", async () => {
    await bed.setBalance(0, 0n);
    await bed.setBalance(1, parseEther("0.05"));
    await baseFee(400n * GWEI);
    await eventually("it is said", async () => (await chain.ready()).problems.join().includes("costs at present"));
    const error = await refusal(chain.submit(addGroup(account, "too expensive")));
    expect(error.code).to.equal("no_payer_available");
    await bed.setBalance(0, parseEther("1000"));
    await eventually("it is ready again", async () => (await chain.ready()).ready);
    await chain.submit(addGroup(account, "paid for"));
  });

  it("one write that needs more than payers usually hold gets its own top-up", async () => {
    await baseFee(GWEI);
    const expensive = await bed.open({
      tuning: { topUpGas: 1n, topUpBelowWei: 1n, topUpToWei: 10n ** 14n, maxTopUpWei: parseEther("0.0005") },
    });
    await chain.close();
    chain = expensive.chain;
    await bed.setBalance(1, 10n ** 14n);
    await eventually(
      "the payer is seen",
      async () => ((await chain.stats()).lanes.find(({ payer }) => payer === 1)?.balanceWei ?? 0n) <= 10n ** 14n,
    );
    const write = request(account, "add_group", {
      functionName: "addGroup",
      args: [account, "expensive", "x".repeat(1_000), [], []],
    });
    expect((await chain.submit(write)).result.group_id).to.match(/^\d+$/);
  });

  it("a write that needs most of what the admin payer has left gets it", async () => {
    const modest = await bed.open({ tuning: { topUpGas: 1n, topUpBelowWei: 1n, topUpToWei: 1n } });
    await chain.close();
    chain = modest.chain;
    const large = (): ReturnType<typeof request> =>
      request(account, "add_group", {
        functionName: "addGroup",
        args: [account, "large", "x".repeat(1_000), [], []],
      });
    const poor = 10n ** 14n;
    const withAdminPayers = async (wei: bigint): Promise<void> => {
      await bed.setBalance(0, wei);
      await bed.setBalance(1, poor);
      const adminsWei = async (): Promise<bigint> => (await chain.stats()).lanes[0]?.balanceWei ?? 0n;
      await eventually("it is seen", async () => (await adminsWei()) <= wei);
      await chain.submit(large());
    };
    await withAdminPayers(parseEther("1000"));
    const { value } = await bed.store.db
      .selectFrom("chain_settings")
      .select("value")
      .where("name", "=", "wanted_balance")
      .executeTakeFirstOrThrow();
    await withAdminPayers((BigInt((value as { wei: string }).wei) * 3n) / 2n);
  });

  it("a draining payer gets the gas for what it has begun", async () => {
    const two = await ChainBed.start({ payers: 2 });
    try {
      const { chain: draining } = await two.open();
      const accounts = [freshAccountId(), freshAccountId()];
      for (const id of accounts) await draining.submit(newAccount(id));
      await two.provider.send("evm_setAutomine", [false]);
      const writing = [];
      for (const [index, id] of accounts.entries()) {
        writing.push(draining.submit(addGroup(id)));
        await eventually("it is under way", async () => {
          const { open } = await draining.stats();
          return open.sent === index + 1;
        });
      }
      await two.setBalance(2, 0n);
      await wantPayers(two.store.db, 1);
      await eventually("it drains", async () => (await draining.stats()).lanes[2]?.usable === false);
      await two.provider.send("evm_setIntervalMining", [1]);
      for (const answer of await Promise.all(writing)) expect(answer.result.group_id).to.match(/^\d+$/);
    } finally {
      await two.stop();
    }
  });

  it("a write gets at most the gas of one transaction", async () => {
    const capped = await bed.open({ tuning: { maxTransactionGas: 130_000n } });
    await chain.close();
    chain = capped.chain;
    const { transactionHash } = await chain.submit(addGroup(account, "near the cap"));
    expect((await bed.provider.getTransaction(transactionHash))?.gasLimit).to.equal(130_000n);
    const large = request(account, "add_group", {
      functionName: "addGroup",
      args: [account, "", "d".repeat(500), [], []],
    });
    expect((await refusal(chain.submit(large))).code).to.equal("invalid_value");
  });
});
