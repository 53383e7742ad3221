/**
 * A write that becomes expensive between its simulation and its block uses up the gas of the whole transaction. Once
 * that is final, each of the others is sent again, alone: a payer's write as a forward request. No account is charged
 * for it.
 */
import { expect } from "chai";
import { Wallet, type HDNodeWallet, type Signer } from "ethers";
import type { SimpleWrite } from "../../../../protocol/executor";
import { packedAccountId, type AccountId, type Address } from "../../../../protocol/ids";
import { rewind } from "../../../../relayer/chain/events/reorg";
import { TRANSACTION_IS_OPEN } from "../../../../relayer/chain/submissions/states";
import type { Chain, SubmitAnswer, SubmitRequest } from "../../../../relayer/chain/types";
import {
  addGroup,
  ChainBed,
  type ChainInstance,
  eventually,
  forwarded,
  freshAccountId,
  newAccount,
} from "../../../support/chainBed";
import { request, signForward } from "../../../support/chainBed";
import { expectAtRest, occupyLane } from "../../../support/batches";
import { refusal } from "../../../support/refusal";

const COUNT = 8;
const RIVAL = 8;
const FINALITY = 4;
const MAX_IN_FLIGHT = 1;
/** Adding them to a group again takes 700,000 gas more than leaving a group unchanged. */
const ACTIONS = Array.from({ length: 14 }, freshAccountId);

describe("a transaction that fails because one of its writes became expensive", function () {
  this.timeout(60_000);
  let bed: ChainBed;
  let relayer: ChainInstance;
  let chain: Chain;
  async function openRelayer(): Promise<void> {
    const tuning = { maxInFlightPerLane: MAX_IN_FLIGHT, finalityDepth: FINALITY, stuckAfterMs: 60_000 };
    relayer = await bed.open({ tuning, payerCount: 1 });
    ({ chain } = relayer);
  }
  before(async () => {
    bed = await ChainBed.start({ payers: 2 });
    await bed.registerPayers(RIVAL, RIVAL);
    await openRelayer();
  });
  after(() => bed?.stop());
  afterEach(() => expectAtRest(bed, chain));

  const reserve = async (): Promise<boolean> => true;
  const chargesOf = (id: unknown): boolean[] =>
    bed.outcomes.filter(({ submissionId }) => submissionId === id).map(({ charged }) => charged);

  const withActions = (id: AccountId): SimpleWrite => ({ functionName: "addGroup", args: [id, "", "", ACTIONS, []] });
  /** Cheap as long as the group contains all of them. */
  const sameActions = (id: AccountId): SimpleWrite => ({
    functionName: "updateGroup",
    args: [id, "1", "", "", ACTIONS, []],
  });
  /** The number of the block in which it happened. */
  async function removeActions(id: AccountId, sender: Signer): Promise<number> {
    const calls = ACTIONS.map((action) => bed.contract.interface.encodeFunctionData("removeAction", [id, action]));
    const sent = await bed.contract.connect(sender).multicall(calls, { gasLimit: 2_000_000 });
    return (await sent.wait())?.blockNumber ?? 0;
  }
  const rival = (): Signer => bed.executor.wallet(RIVAL).connect(bed.provider);

  /** Begins `writes` while the lane is busy, so that they share a transaction, and runs `meanwhile` before it. */
  async function begun<T>(
    writes: () => readonly Promise<T>[],
    meanwhile: () => Promise<unknown>,
  ): Promise<readonly Promise<T>[]> {
    const release = await occupyLane(bed, chain);
    bed.proxy.injectTimes(1, "eth_sendRawTransaction", async () => {
      await meanwhile();
      return undefined;
    });
    const writing = writes();
    await release();
    return writing;
  }

  async function together<T>(writes: () => readonly Promise<T>[], meanwhile: () => Promise<unknown>): Promise<T[]> {
    const writing = await begun(writes, meanwhile);
    return whileMining(() => Promise.all(writing));
  }

  /** Mines blocks meanwhile, so that a failed transaction becomes final. */
  async function whileMining<T>(work: () => Promise<T>): Promise<T> {
    const mining = setInterval(() => void bed.mine(), 100);
    try {
      return await work();
    } finally {
      clearInterval(mining);
    }
  }

  /** A shared transaction that failed after `since`, once that is stored: mined, its writes without outcomes. */
  async function failedBatch(since: Date): Promise<{ readonly hash: string; readonly nonce: number }> {
    const find = async (): Promise<{ hash: string | null; nonce: number | null } | undefined> =>
      bed.store.db
        .selectFrom("transactions")
        .innerJoin("writes", "writes.transaction_id", "transactions.id")
        .select(["hash", "nonce"])
        .where("transactions.state", "=", "mined")
        .where("writes.state", "in", ["carried", "waiting"])
        .where("transactions.created_at", ">", since)
        .executeTakeFirst();
    await eventually("the batch has failed", async () => (await find()) !== undefined);
    const { hash, nonce } = (await find()) ?? {};
    if (typeof hash !== "string" || typeof nonce !== "number") throw new Error("the batch has no transaction");
    return { hash, nonce };
  }

  /** `count` accounts; an update of the first one's group is cheap until its actions are removed. */
  async function preparedAccounts(count: number): Promise<readonly [AccountId, ...AccountId[]]> {
    const accounts = Array.from({ length: count }, freshAccountId) as [AccountId, ...AccountId[]];
    await Promise.all(accounts.map((id) => chain.submit(newAccount(id))));
    await chain.submit(request(accounts[0], "add_group", withActions(accounts[0])));
    return accounts;
  }

  const writesOf = ([victim, ...others]: readonly [AccountId, ...AccountId[]]): Promise<SubmitAnswer>[] => [
    chain.submit(request(victim, "update_group", sameActions(victim), { reserve })),
    ...others.map((id) => chain.submit(addGroup(id, "once", { reserve }))),
  ];

  const idOf = ({ address }: HDNodeWallet): AccountId => packedAccountId(address as Address);

  /** Like `preparedAccounts`, of owners who sign forward requests; the first one can also send a transaction. */
  async function preparedOwners(): Promise<readonly [HDNodeWallet, ...HDNodeWallet[]]> {
    const wallets = Array.from({ length: COUNT }, () => Wallet.createRandom()) as [HDNodeWallet, ...HDNodeWallet[]];
    const newAccountOf = { functionName: "newChainSecuredAccount", args: ["", ""] };
    await Promise.all(wallets.map((wallet) => chain.submit(forwarded(bed, wallet, idOf(wallet), newAccountOf))));
    const [victim] = wallets;
    await chain.submit(await forwardWithGas(victim, withActions(idOf(victim)), "2000000"));
    await bed.provider.send("anvil_setBalance", [victim.address, "0xde0b6b3a7640000"]);
    return wallets;
  }

  const forwardWithGas = async (wallet: HDNodeWallet, write: SimpleWrite, gas: string): Promise<SubmitRequest> => ({
    ...forwarded(bed, wallet, idOf(wallet), write, { reserve }),
    forward: await signForward(bed, wallet, write, { gas }),
  });

  const forwardsOf = ([victim, ...others]: readonly [HDNodeWallet, ...HDNodeWallet[]]): Promise<SubmitAnswer>[] => [
    forwardWithGas(victim, sameActions(idOf(victim)), "1000000").then((expensive) => chain.submit(expensive)),
    ...others.map((wallet) => {
      const write = { functionName: "addGroup", args: [idOf(wallet), "beside it", "", [], []] };
      return chain.submit(forwarded(bed, wallet, idOf(wallet), write, { reserve }));
    }),
  ];

  /** The newest transaction that its writes have left. */
  const abandonedBatch = (): Promise<{ id: string; hash: string | null; block_number: number | null }> =>
    bed.store.db
      .selectFrom("transactions")
      .select(["id", "hash", "block_number"])
      .where("abandon", "=", true)
      .orderBy("created_at", "desc")
      .executeTakeFirstOrThrow();

  async function expectSeparated(answers: readonly SubmitAnswer[]): Promise<void> {
    const hashes = new Set(answers.map(({ transactionHash }) => transactionHash));
    expect(hashes.size, "each in a transaction of its own").to.equal(answers.length);
    const { hash: failed } = await abandonedBatch();
    expect((await bed.provider.getTransactionReceipt(failed ?? ""))?.status).to.equal(0);
    for (const { submissionId } of answers) expect(chargesOf(submissionId), "paid once").to.deep.equal([true]);
  }

  it("of payers' writes: each is made once, alone; one that would fail by now is named, uncharged", async () => {
    const accounts = Array.from({ length: COUNT }, freshAccountId);
    const [victim, loser, ...others] = accounts as [AccountId, AccountId, ...AccountId[]];
    await Promise.all(accounts.map((id) => chain.submit(newAccount(id))));
    await chain.submit(request(victim, "add_group", withActions(victim)));
    const { result } = await chain.submit(addGroup(loser));
    const removal = { functionName: "removeGroup", args: [loser, result.group_id ?? ""] };
    let losing: Promise<{ readonly code: string; readonly facts: Readonly<Record<string, unknown>> }> | undefined;
    const answers = await together(
      () => {
        const writing = [
          chain.submit(request(victim, "update_group", sameActions(victim), { reserve })),
          ...others.map((id) => chain.submit(addGroup(id, "beside it", { reserve }))),
        ];
        losing = refusal(chain.submit(request(loser, "remove_group", removal, { reserve })));
        return writing;
      },
      async () => {
        await removeActions(victim, rival());
        const other = bed.contract.connect(rival());
        await (await other.removeGroup(loser, result.group_id ?? "", { gasLimit: 300_000 })).wait();
      },
    );
    await expectSeparated(answers);
    for (const id of others) expect(await bed.groupCount(id)).to.equal(1);
    const lost = await losing;
    expect([lost?.code, lost?.facts.charged]).to.deep.equal(["unknown_group", undefined]);
    expect(chargesOf(lost?.facts.submission_id)).to.deep.equal([false]);
  });

  it("of forward requests: each is executed once, alone", async () => {
    const owners = await preparedOwners();
    const answers = await together(
      () => forwardsOf(owners),
      () => removeActions(idOf(owners[0]), owners[0].connect(bed.provider)),
    );
    await expectSeparated(answers);
    for (const wallet of owners.slice(1)) expect(await bed.groupCount(idOf(wallet))).to.equal(1);
  });

  it("of forward requests is carried out after a reorg that undoes its failure, and each is done", async () => {
    const since = new Date();
    const owners = await preparedOwners();
    let removedIn = 0;
    const writing = await begun(
      () => forwardsOf(owners),
      async () => (removedIn = await removeActions(idOf(owners[0]), owners[0].connect(bed.provider))),
    );
    const { nonce } = await failedBatch(since);
    // Time enough to send the requests alone, which would use their nonces.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await reorgWith(removedIn, nonce);
    const answers = await whileMining(() => Promise.all(writing));
    expect(new Set(answers.map(({ transactionHash }) => transactionHash)).size).to.equal(1);
    for (const wallet of owners.slice(1)) expect(await bed.groupCount(idOf(wallet)), "made once").to.equal(1);
    for (const { submissionId } of answers) expect(chargesOf(submissionId), "paid once").to.deep.equal([true]);
  });

  it("is not sent again after a reorg: its writes are already separate submissions", async () => {
    const accounts = await preparedAccounts(4);
    const [victim, ...others] = accounts;
    const answers = await together(
      () => writesOf(accounts),
      () => removeActions(victim, rival()),
    );
    await expectSeparated(answers);
    const batch = await abandonedBatch();
    const head = await bed.provider.getBlockNumber();
    await eventually("the follower is at the head", async () => (await chain.stats()).followedBlock === head);
    const fork = (batch.block_number ?? 0) - 1;
    const hash = (await bed.provider.getBlock(fork))?.hash ?? "";
    await bed.provider.send("anvil_reorg", [head - fork, []]);
    await bed.mine();
    // It was final: an operator has it taken back.
    await rewind(bed.store.db, { number: fork, hash });
    for (const { submissionId } of answers)
      await eventually("it is mined again", async () => {
        const now = await chain.submission(submissionId);
        return now?.state === "mined" && now.before !== undefined;
      });
    for (const id of others) expect(await bed.groupCount(id), "done once").to.equal(1);
    const attempts = await bed.store.db
      .selectFrom("attempts")
      .select("is_noop")
      .where("transaction_id", "=", batch.id)
      .orderBy("created_at")
      .execute();
    expect(attempts.at(-1)?.is_noop).to.equal(true);
    // The lane's load is known with a delay of at most a second.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
  });

  /** A reorg of the blocks from `first` on; what lane 1 has sent from this nonce on is in the new ones. */
  async function reorgWith(first: number, nonce: number): Promise<void> {
    const sent = await bed.store.db
      .selectFrom("attempts")
      .innerJoin("transactions", "transactions.id", "transaction_id")
      .select("raw")
      .where("nonce", ">=", nonce)
      .where("payer", "=", 1)
      .orderBy("nonce")
      .execute();
    const head = await bed.provider.getBlockNumber();
    await bed.provider.send("anvil_reorg", [head - first + 1, sent.map(({ raw }) => [raw, 0])]);
  }

  for (const { title, succeeds } of [
    { title: "is carried out after a reorg that undoes its failure, and then nothing is sent alone", succeeds: true },
    { title: "is split once, after a reorg in which it fails again", succeeds: false },
  ])
    it(title, async () => {
      const since = new Date();
      const accounts = await preparedAccounts(4);
      const [victim, ...others] = accounts;
      let removedIn = 0;
      const writing = await begun(
        () => writesOf(accounts),
        async () => (removedIn = await removeActions(victim, rival())),
      );
      const { hash, nonce } = await failedBatch(since);
      // Time enough to send the writes alone, which must not happen yet.
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      await reorgWith(succeeds ? removedIn : removedIn + 1, nonce);
      const receipt = await bed.provider.getTransactionReceipt(hash);
      expect(receipt?.status, "the batch after the reorg").to.equal(succeeds ? 1 : 0);
      const answers = await whileMining(() => Promise.all(writing));
      for (const id of others) expect(await bed.groupCount(id), "made once").to.equal(1);
      const hashes = new Set(answers.map(({ transactionHash }) => transactionHash));
      expect(hashes.size).to.equal(succeeds ? 1 : answers.length);
      for (const { submissionId } of answers) expect(chargesOf(submissionId), "paid once").to.deep.equal([true]);
    });

  it("is split without more transactions in its lane than a lane may have", async () => {
    const since = new Date();
    const accounts = await preparedAccounts(COUNT);
    const writing = await begun(
      () => writesOf(accounts),
      () => removeActions(accounts[0], rival()),
    );
    let [most, isOver] = [0, false];
    const counting = (async () => {
      while (!isOver) {
        most = Math.max(most, await inFlight(accounts));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    await failedBatch(since);
    await whileMining(() => Promise.all(writing)).finally(() => (isOver = true));
    await counting;
    expect(most).to.equal(MAX_IN_FLIGHT);
  });

  it("is split by another relayer when the one that sent it ends", async () => {
    const since = new Date();
    const accounts = await preparedAccounts(4);
    const writing = await begun(
      () => writesOf(accounts),
      () => removeActions(accounts[0], rival()),
    );
    await failedBatch(since);
    const told = bed.outcomes.length;
    await relayer.close();
    for (const write of writing) write.catch(() => undefined);
    await openRelayer();
    await whileMining(() =>
      eventually("all writes have their outcomes", async () => bed.outcomes.length === told + accounts.length),
    );
    for (const id of accounts.slice(1)) expect(await bed.groupCount(id), "made once").to.equal(1);
    expect(bed.outcomes.slice(told).map(({ charged }) => charged)).to.deep.equal(accounts.map(() => true));
  });

  /** Open transactions with writes of these accounts. */
  async function inFlight(accounts: readonly AccountId[]): Promise<number> {
    const { count } = await bed.store.db
      .selectFrom("writes")
      .innerJoin("transactions", "transactions.id", "transaction_id")
      .select(({ fn }) => fn.count<number>("transactions.id").distinct().as("count"))
      .where("account_id", "in", accounts)
      .where(TRANSACTION_IS_OPEN)
      .executeTakeFirstOrThrow();
    return Number(count);
  }
});
