/**
 * Writes that wait for a lane share a transaction: each keeps its id, result, error and price, whatever happens to the
 * others or to the transaction.
 */
import { expect } from "chai";
import { parseEther, Transaction } from "ethers";
import type { KeywrightError } from "../../../../protocol/errors";
import type { AccountId } from "../../../../protocol/ids";
import { CONTRACT } from "../../../../relayer/chain/abi/contract";
import type { Chain, SubmitAnswer } from "../../../../relayer/chain/types";
import { parseSubmissionId } from "../../../../relayer/chain";
import { addGroup, ChainBed, eventually, freshAccountId, newAccount, request } from "../../../support/chainBed";
import { dieOnceSigned, expectAtRest, expectKeptOverReorg, occupyLane, ONE_IN_FLIGHT } from "../../../support/batches";
import { expectInTime } from "../../../support/inTime";
import { refusal } from "../../../support/refusal";
import { refuseWith } from "../../../support/rpcProxy";

const COUNT = 12;
const TIMER_EARLY_MS = 2;

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

describe("batches of writes", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let chain: Chain;
  let accounts: AccountId[];
  before(async () => {
    bed = await ChainBed.start({ payers: 2 });
    ({ chain } = await bed.open({ tuning: ONE_IN_FLIGHT, payerCount: 1 }));
    accounts = Array.from({ length: COUNT }, freshAccountId);
    await Promise.all(accounts.map((id) => chain.submit(newAccount(id))));
  });
  after(() => bed?.stop());
  afterEach(() => expectAtRest(bed, chain));

  const reserve = async (): Promise<boolean> => true;

  const occupied = (): Promise<() => Promise<void>> => occupyLane(bed, chain);

  const settled = <T>(writes: readonly Promise<T>[]): Promise<PromiseSettledResult<T>[]> => Promise.allSettled(writes);

  it("one nonce, one signature, a result for each write", async () => {
    const release = await occupied();
    const signatures = bed.executor.calls.filter((name) => name === "signAsPayer").length;
    const simulations = bed.proxy.count("eth_estimateGas");
    const writing = accounts.map((id, index) => chain.submit(addGroup(id, `in the batch ${index}`, { reserve })));
    await release();
    const answers = await Promise.all(writing);
    expect(new Set(answers.map(({ transactionHash }) => transactionHash)).size).to.equal(1);
    expect(answers.map(({ result }) => result.group_id)).to.deep.equal(Array<string>(COUNT).fill("1"));
    expect(new Set(answers.map(({ submissionId }) => submissionId)).size).to.equal(COUNT);
    expect(bed.executor.calls.filter((name) => name === "signAsPayer").length - signatures).to.equal(1);
    expect(bed.proxy.count("eth_estimateGas"), "one call names every error and the gas").to.equal(simulations);
    for (const id of accounts) expect(await bed.groupCount(id)).to.equal(1);
    for (const { submissionId } of answers)
      expect(bed.outcomes.find((outcome) => outcome.submissionId === submissionId)?.charged).to.equal(true);
  });

  it("leave a busy event loop time for something else, but never wait long for it", async () => {
    const [first, second] = accounts as [AccountId, AccountId];
    const real = performance.eventLoopUtilization;
    try {
      performance.eventLoopUtilization = () => ({ active: 400, idle: 20, utilization: 0.95 });
      const took = [await msOf(() => chain.submit(addGroup(first, "after a pause", { reserve })))];
      performance.eventLoopUtilization = () => ({ active: 900, idle: 0, utilization: 1 });
      took.push(await msOf(() => chain.submit(addGroup(second, "after the longest pause", { reserve }))));
      expect(took[0]).to.be.at.least(400 / 2 - 20 - TIMER_EARLY_MS);
      expect(took[1]).to.be.at.least(250 - TIMER_EARLY_MS);
      // Nobody is asked to wait for what the loop did long ago.
      performance.eventLoopUtilization = () => ({ active: 1e9, idle: 0, utilization: 1 });
      const atOnce = await msOf(() => chain.submit(addGroup(first, "at once", { reserve })));
      expectInTime(atOnce, 250 - TIMER_EARLY_MS, "a write after a long time");
    } finally {
      performance.eventLoopUtilization = real;
    }
  });

  it("a write is reported as far as the transaction it shares", async () => {
    const release = await occupied();
    const writing = accounts.map((id) => chain.submit(addGroup(id, "on its way", { reserve, waitMs: 1_000 })));
    const pending = settled(writing);
    bed.proxy.inject((call, forward) =>
      call.method === "eth_sendRawTransaction"
        ? bed.provider.send("evm_setAutomine", [false]).then(() => forward())
        : undefined,
    );
    await release();
    const ids = (await pending).map((one) =>
      parseSubmissionId(String(one.status === "rejected" && (one.reason as KeywrightError).facts.submission_id)),
    );
    await eventually("every write is sent", async () => {
      const states = await Promise.all(ids.map(async (id) => id && (await chain.submission(id))?.state));
      return states.every((state) => state === "sent");
    });
    expect((await chain.stats()).open).to.deep.equal({ sent: COUNT });
    await bed.mine();
  });

  it("a write that would fail is excluded: it gets its named error, and no credit is held for it", async () => {
    const release = await occupied();
    const bad = chain.submit(
      request(
        accounts[0] as AccountId,
        "remove_group",
        { functionName: "removeGroup", args: [accounts[0] as string, "999"] },
        { reserve },
      ),
    );
    const good = accounts.slice(1).map((id) => chain.submit(addGroup(id, "good", { reserve })));
    const refused = refusal(bad);
    await release();
    expect((await refused).code).to.equal("unknown_group");
    const answers = await Promise.all(good);
    const sent = await bed.provider.getTransaction(answers[0]?.transactionHash ?? "");
    expect((CONTRACT.decodeFunctionData("tryMulticall", sent?.data ?? "0x")[0] as string[]).length).to.equal(COUNT - 1);
  });

  it("one that fails on chain fails alone, with its named error, uncharged", async () => {
    const victim = accounts[0] as AccountId;
    const { result } = await chain.submit(addGroup(victim, "to be removed"));
    await bed.registerPayers(8, 8);
    const release = await occupied();
    const remove = { functionName: "removeGroup", args: [victim, result.group_id ?? ""] };
    const failing = refusal(chain.submit(request(victim, "remove_group", remove, { reserve })));
    const good = accounts.slice(1).map((id) => chain.submit(addGroup(id, "beside a failure", { reserve })));
    await new Promise((resolve) => setTimeout(resolve, 100));
    // After the simulation and before the batch is mined another wallet removes the group.
    const rival = bed.contract.connect(bed.executor.wallet(8).connect(bed.provider));
    bed.proxy.injectTimes(1, "eth_sendRawTransaction", async () => {
      await (await rival.removeGroup(victim, result.group_id ?? "", { gasLimit: 300_000 })).wait();
      return undefined;
    });
    await release();
    const error = await failing;
    expect([error.code, error.facts.charged]).to.deep.equal(["unknown_group", undefined]);
    expect(error.facts).to.have.property("transaction_hash");
    const answers = await Promise.all(good);
    expect(new Set(answers.map(({ transactionHash }) => transactionHash))).to.deep.equal(
      new Set([error.facts.transaction_hash]),
    );
    const failed = bed.outcomes.find(({ submissionId }) => submissionId === error.facts.submission_id);
    expect(failed?.charged).to.equal(false);
  });

  it("a relayer that dies with a signed batch loses none of it: another completes it", async () => {
    const before = await Promise.all(accounts.map((id) => bed.groupCount(id)));
    await dieOnceSigned(bed, chain, (dying) =>
      accounts.map((id) => dying.submit(addGroup(id, "carried on", { reserve }))),
    );
    await eventually("every write landed", async () => {
      const now = await Promise.all(accounts.map((id) => bed.groupCount(id)));
      return now.every((count, index) => count === (before[index] ?? 0) + 1);
    });
  });

  it("a batch whose block is reorged away is sent again, and every write keeps its result", async () => {
    const release = await occupied();
    const writing = accounts.map((id) => chain.submit(addGroup(id, "over a reorg", { reserve })));
    await release();
    const answers: SubmitAnswer[] = await Promise.all(writing);
    expect(
      new Set(answers.map(({ blockNumber }) => blockNumber)),
      "the reorged block contains the batch",
    ).to.deep.equal(new Set([await bed.provider.getBlockNumber()]));
    await expectKeptOverReorg(bed, chain, answers);
  });

  it("a batch that is given up returns every write, uncharged", async () => {
    const release = await occupied();
    const writing = accounts.map((id) => refusal(chain.submit(addGroup(id, "given up", { reserve }))));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const isBatch = (raw: unknown): boolean =>
      Transaction.from(String(raw)).data.startsWith(CONTRACT.getFunction("tryMulticall")?.selector ?? "?");
    bed.proxy.inject((call, forward) =>
      call.method === "eth_sendRawTransaction" && isBatch(call.params[0])
        ? refuseWith("transaction type not supported", -32_602)(call, forward)
        : undefined,
    );
    await release();
    const errors = await Promise.all(writing);
    expect(new Set(errors.map(({ code }) => code))).to.deep.equal(new Set(["chain_unavailable"]));
    for (const { facts } of errors) {
      const id = parseSubmissionId(String(facts.submission_id));
      expect(bed.outcomes.find(({ submissionId }) => submissionId === id)?.charged).to.equal(false);
    }
  });

  it("a payer with little gas takes as many writes at a time as it can pay for", async () => {
    const little = 2_000_000n * BigInt((await bed.provider.getFeeData()).maxFeePerGas ?? 0n);
    await bed.setBalance(0, 0n);
    await bed.setBalance(1, little);
    await eventually("the lane's balance is known", async () =>
      (await chain.stats()).lanes.every(({ payer, balanceWei }) => payer !== 1 || balanceWei <= little),
    );
    const writing = settled(accounts.map((id) => chain.submit(addGroup(id, "little gas"))));
    // Its balance is restored, so that each of its transactions has the same amount.
    const refilling = setInterval(() => void bed.setBalance(1, little), 50);
    const reasons = (await writing).map((one) => (one.status === "fulfilled" ? "done" : String(one.reason)));
    clearInterval(refilling);
    await bed.setBalance(1, parseEther("100"));
    await bed.setBalance(0, parseEther("1000"));
    expect(reasons).to.deep.equal(Array(COUNT).fill("done"));
  });

  it("where nodes cannot simulate a batch each write is simulated separately", async () => {
    const plain = await bed.open({ tuning: ONE_IN_FLIGHT, payerCount: 1 });
    bed.proxy.inject((call, forward) =>
      call.method === "eth_call" && call.params.length > 2
        ? refuseWith("too many arguments, want at most 2", -32_602)(call, forward)
        : undefined,
    );
    const release = await occupied();
    const [first] = accounts as [AccountId, ...AccountId[]];
    const bad = refusal(
      plain.chain.submit(request(first, "remove_group", { functionName: "removeGroup", args: [first, "999"] })),
    );
    const writing = accounts.map((id) => plain.chain.submit(addGroup(id, "one by one")));
    await release();
    expect((await bad).code).to.equal("unknown_group");
    const answers = await Promise.all(writing);
    expect(new Set(answers.map(({ transactionHash }) => transactionHash)).size).to.be.lessThan(4);
    await plain.close();
  });
});
