/** Offered fees follow the chain, with or without a node's tip methods, and are raised up to the cap. */
import { expect } from "chai";
import { FeeOracle, type Fees } from "../../../../relayer/chain/payers/fees";
import { RpcClient } from "../../../../relayer/chain/rpc/client";
import { DEVELOPMENT_CHAIN_ID } from "../../../../scripts/dev/chain";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount } from "../../../support/chainBed";
import { refuseWith } from "../../../support/rpcProxy";
import { expectInTime, itInTime } from "../../../support/inTime";

const GWEI = 10n ** 9n;

describe("fees", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let rpc: RpcClient;
  before(async () => {
    bed = await ChainBed.start({ payers: 1 });
    rpc = new RpcClient({ urls: [bed.proxy.url], chainId: DEVELOPMENT_CHAIN_ID, timeoutMs: 2_000, deadlineMs: 5_000 });
  });
  after(async () => {
    await rpc?.close();
    await bed?.stop();
  });
  afterEach(() => bed.proxy.heal());

  const oracle = (capWei = 500n * GWEI): FeeOracle => new FeeOracle({ rpc, capWei, defaultTipWei: 3n * GWEI });
  const missing = (...methods: string[]): void =>
    void bed.proxy.inject((call, forward) =>
      methods.includes(call.method)
        ? refuseWith(`the method ${call.method} does not exist/is not available`, -32_601)(call, forward)
        : undefined,
    );

  itInTime("derive the tip from the gas price where nodes have no tip method", async () => {
    missing("eth_maxPriorityFeePerGas");
    bed.proxy.inject((call) =>
      call.method === "eth_gasPrice" ? Promise.resolve({ result: `0x${(1_007n * GWEI).toString(16)}` }) : undefined,
    );
    const base = BigInt((await bed.provider.getBlock("latest"))?.baseFeePerGas ?? 0);
    const started = Date.now();
    expect((await oracle(5_000n * GWEI).now()).maxPriorityFeePerGas).to.equal(1_007n * GWEI - base);
    expectInTime(Date.now() - started, 1_000);
  });

  it("offer the configured tip where nodes have neither, and writes land", async () => {
    missing("eth_maxPriorityFeePerGas", "eth_gasPrice");
    expect((await oracle().now()).maxPriorityFeePerGas).to.equal(3n * GWEI);
    const { chain } = await bed.open();
    expect((await chain.submit(newAccount(freshAccountId()))).transactionHash).to.match(/^0x/);
  });

  it("are raised step by step to the cap, and no further", async () => {
    const fees = oracle(500n * GWEI);
    const steps: Fees[] = [{ maxFeePerGas: 10n * GWEI, maxPriorityFeePerGas: GWEI }];
    for (;;) {
      const next = await fees.toReplace(steps.at(-1) as Fees);
      if (next === undefined) break;
      expect(next.maxFeePerGas * 10n > (steps.at(-1) as Fees).maxFeePerGas * 11n).to.equal(true);
      steps.push(next);
    }
    expect(steps.length).to.be.greaterThan(13);
    const last = (steps.at(-1) as Fees).maxFeePerGas;
    expect(last <= 500n * GWEI && last * 11n >= 500n * GWEI * 10n, `ends at ${last}`).to.equal(true);
  });

  it("of a stuck write rise until it lands, in any number of steps", async () => {
    const { chain } = await bed.open();
    const account = freshAccountId();
    await chain.submit(newAccount(account));
    // A node that reports low fees, and accepts no transaction below 50 gwei.
    bed.proxy.inject((call, forward) =>
      call.method === "eth_getBlockByNumber"
        ? forward().then((answer) =>
            "result" in answer ? { result: { ...(answer.result as object), baseFeePerGas: "0x1" } } : answer,
          )
        : undefined,
    );
    bed.proxy.inject((call) =>
      call.method === "eth_maxPriorityFeePerGas" ? Promise.resolve({ result: `0x${GWEI.toString(16)}` }) : undefined,
    );
    await bed.provider.send("anvil_setNextBlockBaseFeePerGas", [`0x${(50n * GWEI).toString(16)}`]);
    await bed.mine();
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const { submissionId } = await chain.submit(addGroup(account, "expensive"));
    const attempts = await bed.store.db
      .selectFrom("attempts")
      .innerJoin("writes", "writes.transaction_id", "attempts.transaction_id")
      .select("hash")
      .where("writes.id", "=", submissionId)
      .execute();
    expect(attempts.length).to.be.greaterThan(12);
    await eventually("nothing is open", async () => Object.keys((await chain.stats()).open).length === 0);
  });
});
