/**
 * Faults between this relayer and its node, as known from relayers in production. After each: exactly one effect, no
 * nonce gap, advancing lanes, one report to the ledger. outages.test.ts has endpoints that do not answer.
 */
import { expect } from "chai";
import { parseEther } from "ethers";
import type { AccountId } from "../../../../protocol/ids";
import { KeywrightError } from "../../../../protocol/errors";
import type { Chain, SubmissionId } from "../../../../relayer/chain/types";
import { parseSubmissionId } from "../../../../relayer/chain";
import { cancelSubmission } from "../../../../relayer/chain/submissions/transactions";
import {
  addGroup,
  ChainBed,
  eventually,
  freshAccountId,
  IMPATIENT,
  newAccount,
  request,
  type ChainInstance,
} from "../../../support/chainBed";
import { expectAtRest, expectKeptOverReorg } from "../../../support/batches";
import { refusal } from "../../../support/refusal";
import { forwardThenHang, refuseWith, RpcProxy, swallow } from "../../../support/rpcProxy";
import { expectInTime, itInTime } from "../../../support/inTime";

describe("faults between relayer and chain", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let relayer: ChainInstance;
  let chain: Chain;
  let account: AccountId;

  before(async () => {
    bed = await ChainBed.start({ payers: 1 });
    relayer = await bed.open({ tuning: IMPATIENT });
    chain = relayer.chain;
    account = freshAccountId();
    await chain.submit(newAccount(account));
  });
  after(() => bed?.stop());
  /** Nothing is open, and the lane accepts another write at once. */
  afterEach(async () => {
    await expectAtRest(bed, chain);
    await addsExactlyOne(() => chain.submit(addGroup(account, "well")));
  });

  async function addsExactlyOne(write: () => Promise<unknown>): Promise<void> {
    const before = await bed.groupCount(account);
    await write();
    expect(await bed.groupCount(account)).to.equal(before + 1);
  }

  const reserve = async (): Promise<boolean> => true;

  it("A1: a broadcast that is dropped leaves no gap: it is sent again", async () => {
    bed.proxy.injectTimes(1, "eth_sendRawTransaction", swallow);
    await addsExactlyOne(() => chain.submit(addGroup(account, "swallowed", { reserve })));
  });

  it("A1: temporary refusals leave no gap", async () => {
    const stop = bed.proxy.inject((call) =>
      call.method === "eth_sendRawTransaction" ? refuseWith("Forbidden", -32_600)(call, never) : undefined,
    );
    const writes = [freshAccountId(), freshAccountId(), freshAccountId()].map((id) =>
      chain.submit(newAccount(id, { reserve })).catch((error: unknown) => error),
    );
    await new Promise((resolve) => setTimeout(resolve, 60));
    stop();
    for (const outcome of await Promise.all(writes))
      if (outcome instanceof KeywrightError) expect(outcome.code).to.equal("chain_unavailable");
  });

  it("A1: a write that every node refuses permanently is given up, its nonce filled, nothing charged", async () => {
    const stop = bed.proxy.inject((call) =>
      isFirstOf(call) ? refuseWith("transaction type not supported", -32_602)(call, never) : undefined,
    );
    const error = await refusal(chain.submit(addGroup(account, "refused", { reserve })));
    stop();
    expect(error.code).to.equal("chain_unavailable");
    const id = String(error.facts.submission_id);
    expect(bed.outcomes.find(({ submissionId }) => submissionId === id)?.charged).to.equal(false);
    expect((await chain.submission(parseSubmissionId(id) as never))?.state).to.equal("expired");
  });
  let refusedRaw: unknown;
  /** The write itself is refused, the transaction that fills its nonce is not. */
  function isFirstOf({ method, params }: { method: string; params: readonly unknown[] }): boolean {
    if (method !== "eth_sendRawTransaction") return false;
    refusedRaw ??= params[0];
    return params[0] === refusedRaw;
  }

  it("A2: a write that the executor cannot sign releases its nonce", async () => {
    bed.executor.failing.set("signAsPayer", new KeywrightError("not_authorized", "no"));
    const before = await bed.nextNonce();
    for (let time = 0; time < 5; time++)
      expect((await refusal(chain.submit(addGroup(account, "unsigned", { reserve })))).code).to.equal("not_authorized");
    bed.executor.failing.clear();
    expect(await bed.nextNonce()).to.equal(before);
    expect(bed.outcomes.slice(-5).every(({ charged }) => !charged)).to.equal(true);
  });

  it("A2: an unsigned nonce between two others is filled", async () => {
    const [first, second] = [freshAccountId(), freshAccountId()];
    bed.executor.failing.set("signAsPayer", new KeywrightError("executor_unavailable", "restarting"));
    const one = chain.submit(newAccount(first, { waitMs: 500 })).catch((error: unknown) => error as KeywrightError);
    await eventually("the first has its nonce", async () => ((await chain.stats()).open.reserved ?? 0) === 1);
    const two = chain.submit(newAccount(second));
    await eventually("the second has its nonce", async () => ((await chain.stats()).open.reserved ?? 0) === 2);
    // From here on the first is refused permanently, the second is signed.
    const sign = bed.executor.call.bind(bed.executor);
    bed.executor.call = async (name, asked) => {
      if (name === "signAsPayer" && JSON.stringify(asked).includes(first.slice(2)))
        throw new KeywrightError("not_authorized", "no");
      return sign(name, asked);
    };
    bed.executor.failing.clear();
    await two;
    bed.executor.call = sign;
    expect((await one) as KeywrightError)
      .to.have.property("code")
      .that.is.oneOf(["not_authorized", "submission_pending"]);
    expect(await chain.account(first)).to.equal(undefined);
    expect((await chain.account(second))?.id).to.equal(second);
    await staysFailedAfterReorg(first);
  });

  /** What the executor declined failed whatever the chain does: a reorg of the no-op with its nonce changes nothing. */
  async function staysFailedAfterReorg(of: AccountId): Promise<void> {
    const noop = () =>
      bed.store.db
        .selectFrom("writes")
        .innerJoin("transactions", "transactions.id", "writes.transaction_id")
        .select(["writes.id", "transactions.state", "block_number", "block_hash"])
        .where("account_id", "=", of)
        .executeTakeFirstOrThrow();
    await eventually("the no-op is mined", async () => (await noop()).state === "mined");
    await bed.followed();
    const { id, block_number: block, block_hash: hash } = await noop();
    await bed.provider.send("anvil_reorg", [(await bed.provider.getBlockNumber()) - Number(block) + 1, []]);
    await bed.mine();
    await eventually("it is mined again", async () => {
      const now = await noop();
      return now.state === "mined" && now.block_hash !== hash;
    });
    const submission = await chain.submission(parseSubmissionId(id) as SubmissionId);
    expect([submission?.state, submission?.error?.code]).to.deep.equal(["failed", "not_authorized"]);
  }

  it("A2: a counter above the chain without a write is lowered again", async () => {
    await bed.store.db.updateTable("lanes").set({ next_nonce: 5_000 }).where("payer", "=", 1).execute();
    const { address } = bed.executor.wallet(1);
    await eventually(
      "the counter is the chain's",
      async () => (await bed.nextNonce()) === (await bed.provider.getTransactionCount(address)),
    );
  });

  it("A2: a counter below the chain (an older copy of the store) is raised", async () => {
    const { address } = bed.executor.wallet(1);
    const raised = (await bed.nextNonce()) + 3;
    await bed.provider.send("anvil_setNonce", [address, `0x${raised.toString(16)}`]);
    await eventually("the counter is the chain's", async () => (await bed.nextNonce()) === raised);
  });

  it(
    "A2: a write whose nonce a foreign transaction used is sent again once that one is final, not before, " +
      "and charged once",
    async () => {
      const finalityDepth = 4;
      const patient = await bed.open({ tuning: { finalityDepth } });
      const thief = bed.executor.wallet(1).connect(bed.provider);
      let isStolen = false;
      bed.proxy.inject(async ({ method }) => {
        if (method !== "eth_sendRawTransaction" || isStolen) return undefined;
        isStolen = true;
        await (await thief.sendTransaction({ to: thief.address })).wait();
        return undefined;
      });
      const before = await bed.groupCount(account);
      const write = addGroup(account, "overtaken", { reserve, idempotencyKey: "overtaken" });
      const unknown = await refusal(patient.chain.submit({ ...write, waitMs: 3_000 }));
      expect(unknown.code, "while it is not final").to.equal("submission_pending");
      await bed.mine(finalityDepth);
      const { submissionId } = await patient.chain.submit(write);
      expect(submissionId).to.equal(unknown.facts.submission_id);
      expect(bed.outcomes.at(-1)).to.include({ submissionId, charged: true });
      expect(await bed.groupCount(account)).to.equal(before + 1);
      await patient.close();
    },
  );

  it("answers nobody with a write of another account that was made under the same idempotency key", async () => {
    const other = freshAccountId();
    await chain.submit(newAccount(other));
    const idempotencyKey = "of two accounts";
    await chain.submit(addGroup(account, "of one", { reserve, idempotencyKey }));
    const refused = await refusal(chain.submit(addGroup(other, "of the other", { reserve, idempotencyKey })));
    expect([refused.code, await bed.groupCount(other)]).to.deep.equal(["idempotency_conflict", 0]);
  });

  it("A3: a transaction that a node dropped is sent again", async () => {
    await bed.provider.send("evm_setAutomine", [false]);
    const writing = chain.submit(addGroup(account, "dropped"));
    const hash = await pendingHash();
    await bed.provider.send("anvil_dropTransaction", [hash]);
    await bed.provider.send("evm_setAutomine", [true]);
    await addsExactlyOne(() => writing);
  });

  it("A3: a write that was mined although it had been cancelled is made again after a reorg", async () => {
    await bed.provider.send("evm_setAutomine", [false]);
    const writing = chain.submit(addGroup(account, "cancelled too late", { reserve }));
    const hash = await pendingHash();
    const isSending = ({ method }: { method: string }): boolean => method === "eth_sendRawTransaction";
    bed.proxy.inject((call, forward) => (isSending(call) ? swallow(call, forward) : undefined));
    expect(await cancelSubmission(bed.store.db, bed.begun.at(-1) ?? "")).to.equal(true);
    const noop = bed.store.db
      .selectFrom("attempts as a")
      .innerJoin("attempts as b", "a.transaction_id", "b.transaction_id")
      .select("a.hash")
      .where("b.hash", "=", hash)
      .where("a.is_noop", "=", true);
    await eventually("its no-op is signed", async () => (await noop.executeTakeFirst()) !== undefined);
    await bed.mine();
    const answer = await writing;
    bed.proxy.heal();
    await bed.provider.send("evm_setAutomine", [true]);
    await expectKeptOverReorg(bed, chain, [answer]);
  });

  it("A3: a cancelled write whose no-op cannot be signed keeps its fees, and is noticed once it is mined", async () => {
    await bed.provider.send("evm_setAutomine", [false]);
    const writing = chain.submit(addGroup(account, "cancelled, not replaced", { reserve }));
    const hash = await pendingHash();
    bed.executor.failing.set("signNoop", new KeywrightError("not_authorized", "no"));
    expect(await cancelSubmission(bed.store.db, bed.begun.at(-1) ?? "")).to.equal(true);
    const asked = (): number => bed.executor.calls.filter((name) => name.startsWith("sign")).length;
    const before = asked();
    await eventually("several looks found it old enough for higher fees", () => asked() > before + 8);
    const attempts = bed.store.db
      .selectFrom("attempts as a")
      .innerJoin("attempts as b", "a.transaction_id", "b.transaction_id");
    const all = await attempts.select("a.hash").where("b.hash", "=", hash).execute();
    expect(all.map((attempt) => attempt.hash)).to.deep.equal([hash]);
    await bed.mine();
    expect((await writing).transactionHash).to.equal(hash);
    bed.executor.failing.clear();
    await bed.provider.send("evm_setAutomine", [true]);
  });

  it("A4: a stuck transaction is replaced with fees an eighth higher", async () => {
    const before = await bed.groupCount(account);
    await bed.provider.send("evm_setAutomine", [false]);
    const writing = chain.submit(addGroup(account, "stuck"));
    const hash = await pendingHash();
    const attempts = (): Promise<{ hash: string; max_fee: string; priority_fee: string }[]> =>
      bed.store.db
        .selectFrom("attempts as a")
        .innerJoin("attempts as b", "a.transaction_id", "b.transaction_id")
        .select(["a.hash", "a.max_fee", "a.priority_fee"])
        .where("b.hash", "=", hash)
        .orderBy("a.created_at")
        .execute();
    await eventually("it was replaced", async () => (await attempts()).length > 1);
    await bed.provider.send("evm_setAutomine", [true]);
    await bed.mine();
    const { transactionHash } = await writing;
    expect((await attempts()).map((attempt) => attempt.hash)).to.include(transactionHash);
    expect(await bed.groupCount(account)).to.equal(before + 1);
    const [first, second] = await attempts();
    expect(BigInt(second?.max_fee ?? 0) * 8n >= BigInt(first?.max_fee ?? 0) * 9n).to.equal(true);
    expect(BigInt(second?.priority_fee ?? 0) * 8n >= BigInt(first?.priority_fee ?? 0) * 9n).to.equal(true);
  });

  it("A4: 'replacement transaction underpriced' raises the fees until a node accepts it", async () => {
    bed.proxy.injectTimes(2, "eth_sendRawTransaction", refuseWith("replacement transaction underpriced"));
    await addsExactlyOne(() => chain.submit(addGroup(account, "underpriced")));
  });

  it("A5: a time-out after the node accepted it has one effect", async () => {
    bed.proxy.injectTimes(1, "eth_sendRawTransaction", forwardThenHang);
    await addsExactlyOne(() => chain.submit(addGroup(account, "indeterminate", { reserve })));
  });

  for (const words of [
    "already known",
    "AlreadyKnown",
    "nonce too low",
    "Known transaction",
    "nonce too low: next nonce 7, tx nonce 6",
    "OldNonce",
  ]) {
    it(`A5: "${words}" after the node accepted it has one effect`, async () => {
      bed.proxy.injectTimes(1, "eth_sendRawTransaction", async (_call, forward) => {
        await forward();
        return { error: { code: -32_000, message: words } };
      });
      await addsExactlyOne(() => chain.submit(addGroup(account, "known")));
    });
  }

  it("A7: a node that wrongly says 'nonce too low' is overruled", async () => {
    bed.proxy.injectTimes(3, "eth_sendRawTransaction", refuseWith("nonce too low"));
    await addsExactlyOne(() => chain.submit(addGroup(account, "liar")));
  });

  it("A7: a node that lies about nonces changes nothing permanently", async () => {
    let asked = 0;
    const lies = ["0x0", undefined, "0xffff", "0x1"];
    bed.proxy.inject(({ method }) => {
      const lie = method === "eth_getTransactionCount" ? lies[asked++ % lies.length] : undefined;
      return lie === undefined ? undefined : Promise.resolve({ result: lie });
    });
    await eventually("the maintenance met the lies", () => asked > 12);
    await addsExactlyOne(() => chain.submit(addGroup(account, "nonces")));
  });

  itInTime("A8: a nonce error under a general code never marks the endpoint as failing", async () => {
    bed.proxy.injectTimes(2, "eth_sendRawTransaction", refuseWith("nonce too low", -32_603));
    const before = await bed.groupCount(account);
    const sends = bed.proxy.count("eth_sendRawTransaction");
    const writing = chain.submit(addGroup(account, "general"));
    await eventually("the refusal was met", () => bed.proxy.count("eth_sendRawTransaction") > sends);
    const started = Date.now();
    await chain.account(account);
    expectInTime(Date.now() - started, 150);
    await writing;
    expect(await bed.groupCount(account)).to.equal(before + 1);
  });

  it("A10: a payer without gas answers 503 with nothing spent, and the admin payer tops it up", async () => {
    await bed.setBalance(1, 0n);
    await bed.setBalance(0, 0n);
    await eventually("the lane is seen to be empty", async () =>
      (await chain.stats()).lanes.every(({ usable }) => !usable),
    );
    const error = await refusal(chain.submit(addGroup(account, "broke")));
    expect(error.code).to.equal("no_payer_available");
    expect(error.status).to.equal(503);
    expect((await chain.ready()).problems.join()).to.contain("has gas");
    await bed.setBalance(0, parseEther("10"));
    await eventually(
      "the payer was topped up",
      async () => (await bed.provider.getBalance(bed.executor.wallet(1).address)) >= parseEther("0.05"),
    );
    await eventually("the lane is used again", async () => (await chain.ready()).ready);
    const topUps = await bed.store.db
      .selectFrom("transactions")
      .select("state")
      .where("purpose", "=", "top_up")
      .execute();
    expect(topUps.length).to.equal(1);
  });

  it("a write that reverts when it is mined has its reason, and is charged", async () => {
    await chain.submit(addGroup(account, "to be removed"));
    const group = String((await bed.contract.getAccount(account)).lastGroupId);
    const remove = { functionName: "removeGroup", args: [account, group] };
    await bed.registerPayers(9, 9);
    const other = bed.executor.wallet(9).connect(bed.provider);
    await bed.provider.send("evm_setAutomine", [false]);
    await bed.contract
      .connect(other)
      .removeGroup(account, group, { gasLimit: 200_000, maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 11n });
    const writing = refusal(chain.submit(request(account, "remove_group", remove, { reserve })));
    await eventually(
      "both are pending",
      async () => Number((await bed.provider.send("txpool_status", [])).pending) === 2,
    );
    await bed.provider.send("evm_setAutomine", [true]);
    await bed.mine();
    const error = await writing;
    expect(error.code).to.equal("unknown_group");
    expect(error.facts).to.include({ charged: true, group_id: group });
    expect(bed.outcomes.at(-1)).to.include({ charged: true, kind: "remove_group" });
  });

  itInTime("a relayer that stops no longer waits for a write's confirmations", async () => {
    const careful = await bed.open({ confirmations: 3, tuning: IMPATIENT });
    const before = await bed.groupCount(account);
    const writing = refusal(careful.chain.submit(addGroup(account, "to be confirmed")));
    await eventually("it is mined", async () => (await bed.groupCount(account)) > before);
    await eventually("that is known", async () =>
      Object.values((await chain.stats()).open).every((count) => count === 0),
    );
    const startedAt = performance.now();
    await careful.close();
    expect((await writing).code).to.equal("submission_pending");
    expectInTime(performance.now() - startedAt, 3_000);
  });

  it("A7: a node that stopped is not read from after a write", async () => {
    const frozen = await RpcProxy.start(bed.node.rpcUrl);
    const second = await bed.open({ rpcUrls: [frozen.url, bed.proxy.url] });
    const number = await bed.provider.getBlockNumber();
    frozen.inject((call) =>
      call.method === "eth_blockNumber" ? Promise.resolve({ result: `0x${number.toString(16)}` }) : undefined,
    );
    frozen.inject((call) => (call.method === "eth_call" ? askAt(number, call.params[0]) : undefined));
    for (let time = 0; time < 3; time++) {
      const { result } = await second.chain.submit(addGroup(account, `fresh ${time}`));
      const { items } = await second.chain.groups(account, { offset: 0, limit: 1_000 });
      expect(items.map(({ id }) => String(id))).to.include(result.group_id);
    }
    await second.close();
    await frozen.stop();
  });

  /** The state at a block: what a node that stopped there would answer. */
  async function askAt(number: number, asked: unknown): Promise<{ result: unknown }> {
    return { result: await bed.provider.send("eth_call", [asked, `0x${number.toString(16)}`]) };
  }

  async function pendingHash(): Promise<string> {
    let hash: string | undefined;
    await eventually("a transaction is pending", async () => {
      const { pending } = (await bed.provider.send("txpool_content", [])) as {
        pending: Record<string, Record<string, { hash: string }>>;
      };
      hash = Object.values(pending).flatMap((byNonce) => Object.values(byNonce))[0]?.hash;
      return hash !== undefined;
    });
    return hash as string;
  }

  const never = (): Promise<never> => Promise.reject(new Error("not forwarded"));
});
