/** For tests of shared transactions: writes that wait together, and a lane at rest afterwards. */
import { expect } from "chai";
import type { Chain } from "../../relayer/chain/types";
import { eventually, freshAccountId, newAccount, type ChainBed } from "./chainBed";

/** Time for writes to arrive in the queue. */
const ARRIVED_MS = 150;

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

/** Nothing is open, the ledger was told of each write once, and lane 1's nonce equals the chain's. */
export async function expectAtRest(bed: ChainBed, chain: Chain): Promise<void> {
  bed.proxy.heal();
  await bed.provider.send("evm_setAutomine", [true]);
  await eventually("no submission is open", async () =>
    Object.values((await chain.stats()).open).every((count) => count === 0),
  );
  const told = bed.outcomes.map(({ submissionId }) => submissionId);
  expect(new Set(told).size, "the books hear of each write once").to.equal(told.length);
  const lane = await bed.store.db
    .selectFrom("lanes")
    .select(["address", "next_nonce"])
    .where("payer", "=", 1)
    .executeTakeFirstOrThrow();
  expect(lane.next_nonce).to.equal(await bed.provider.getTransactionCount(lane.address));
}
