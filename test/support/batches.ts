/** For tests of shared transactions: writes that wait together, and checks that the lane is idle afterwards. */
import { expect } from "chai";
import type { ChainTuning } from "../../relayer/chain";
import type { Chain, SubmitAnswer } from "../../relayer/chain/types";
import { eventually, freshAccountId, newAccount, type ChainBed } from "./chainBed";
import { refuseWith } from "./rpcProxy";

/** With one in flight the next is taken when the first is mined, so all waiting writes share a transaction. */
export const ONE_IN_FLIGHT: Partial<ChainTuning> = { maxInFlightPerLane: 1, stuckAfterMs: 60_000 };

/** Time for writes to arrive in the queue. */
const ARRIVED_MS = 150;
/** The lane's load is known with a delay of at most a second. */
const LOAD_KNOWN_MS = 1_100;

/** Occupies the lane, so that the next writes wait together. The returned function releases it. */
export async function occupyLane(bed: ChainBed, chain: Chain): Promise<() => Promise<void>> {
  await bed.provider.send("evm_setAutomine", [false]);
  const first = chain.submit(newAccount(freshAccountId()));
  await eventually("the lane is taken", async () => ((await chain.stats()).open.sent ?? 0) === 1);
  return async () => {
    await new Promise((resolve) => setTimeout(resolve, ARRIVED_MS));
    await bed.provider.send("evm_setAutomine", [true]);
    await bed.mine();
    await first;
  };
}

/** Writes through a second relayer, which dies once their transaction is signed: none of its broadcasts is accepted. */
export async function dieOnceSigned(
  bed: ChainBed,
  chain: Chain,
  write: (dying: Chain) => readonly Promise<unknown>[],
): Promise<void> {
  const release = await occupyLane(bed, chain);
  bed.proxy.inject((call, forward) =>
    call.method === "eth_sendRawTransaction" ? refuseWith("Forbidden", -32_600)(call, forward) : undefined,
  );
  const dying = await bed.open({
    tuning: { maxInFlightPerLane: 1, answerWithinMs: 2_000 },
    payerCount: 1,
    renewsLease: false,
  });
  const writing = write(dying.chain).map((one) => one.catch((error: unknown) => error));
  await release();
  await eventually("the batch is signed", async () => {
    const rows = await bed.store.db
      .selectFrom("transactions")
      .select("transactions.id")
      .innerJoin("writes", "transaction_id", "transactions.id")
      .where("place", "=", 1)
      .where("transactions.state", "=", "signed")
      .execute();
    return rows.length > 0;
  });
  await dying.close();
  bed.proxy.heal();
  await Promise.all(writing);
}

/** After a reorg every write is mined again, with the same result. */
export async function expectKeptOverReorg(
  bed: ChainBed,
  chain: Chain,
  answers: readonly SubmitAnswer[],
  depth = 1,
): Promise<void> {
  await bed.reorg(depth);
  for (const { submissionId, result } of answers) {
    await eventually("it is mined again", async () => {
      const now = await chain.submission(submissionId);
      return now?.state === "mined" && now.before !== undefined;
    });
    expect((await chain.submission(submissionId))?.result).to.deep.equal(result);
  }
  await new Promise((resolve) => setTimeout(resolve, LOAD_KNOWN_MS));
}

/** Nothing is open, each write was reported to the ledger once, and lane 1's nonce equals the chain's. */
export async function expectAtRest(bed: ChainBed, chain: Chain): Promise<void> {
  bed.proxy.heal();
  await bed.provider.send("evm_setAutomine", [true]);
  await eventually("no submission is open", async () =>
    Object.values((await chain.stats()).open).every((count) => count === 0),
  );
  bed.expectToldOnce();
  const { address } = bed.executor.wallet(1);
  expect(await bed.nextNonce(), "the counter is the chain's").to.equal(await bed.provider.getTransactionCount(address));
}
