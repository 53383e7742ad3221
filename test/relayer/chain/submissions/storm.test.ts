/**
 * Load with every fault at once, in a repeatable order: two relayers, one store, a node behind two faulty proxies,
 * reorgs. Afterwards the ledger is checked.
 */
import { expect } from "chai";
import { KeywrightError } from "../../../../protocol/errors";
import type { AccountId } from "../../../../protocol/ids";
import type { Chain } from "../../../../relayer/chain/types";
import {
  addGroup,
  ChainBed,
  eventually,
  freshAccountId,
  newAccount,
  type ChainInstance,
} from "../../../support/chainBed";
import { count, SEED } from "../../../support/counts";
import { BREAK, HANG, refuseWith, RpcProxy, type Fault } from "../../../support/rpcProxy";

/** Random numbers from 0 to 1, the same in each run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const WORDS = [
  "already known",
  "nonce too low",
  "replacement transaction underpriced",
  "header not found",
  "txpool is full",
  "internal error",
  "OldNonce",
  "nonce gap",
];

function weather(next: () => number): Fault {
  return async (call, forward) => {
    const dice = next();
    if (dice < 0.03) return HANG;
    if (dice < 0.06) return BREAK;
    if (dice < 0.1)
      return refuseWith(WORDS[Math.floor(next() * WORDS.length)] ?? "internal error", next() < 0.5 ? -32_000 : -32_603)(
        call,
        forward,
      );
    if (dice < 0.13) return forward().then(() => HANG);
    if (dice < 0.15 && call.method === "eth_getTransactionCount")
      return { result: `0x${Math.floor(next() * 400).toString(16)}` };
    if (dice < 0.17 && call.method === "eth_getTransactionReceipt") return { result: null };
    if (dice < 0.25) await new Promise((resolve) => setTimeout(resolve, next() * 100));
    return forward();
  };
}

describe("all faults at once", function () {
  this.timeout(count(120_000, 600_000));
  let bed: ChainBed;
  const lines: RpcProxy[] = [];
  const relayers: ChainInstance[] = [];
  before(async () => {
    bed = await ChainBed.start({ payers: 2 });
    for (let relayer = 0; relayer < 2; relayer++) {
      const pair = [await RpcProxy.start(bed.node.rpcUrl), await RpcProxy.start(bed.node.rpcUrl)];
      lines.push(...pair);
      relayers.push(
        await bed.open({
          rpcUrls: pair.map(({ url }) => url),
          tuning: { rpcTimeoutMs: 1_000, rpcDeadlineMs: 10_000 },
        }),
      );
    }
  });
  after(async () => {
    await bed?.stop();
    for (const line of lines) await line.stop();
  });

  /** As a client does: the same key until there is an answer; a new one for a write that was given up. */
  async function writeOnce(chain: Chain, id: AccountId, name: string): Promise<void> {
    for (let attempt = 0; ; attempt++) {
      const idempotencyKey = `${id}:${name}:${attempt}`;
      for (;;) {
        try {
          await chain.submit(addGroup(id, name, { idempotencyKey, waitMs: 4_000, reserve: async () => true }));
          return;
        } catch (error) {
          if (!(error instanceof KeywrightError) || !error.retryable) throw error;
          const isOver = error.code !== "submission_pending" && "submission_id" in error.facts;
          if (isOver) break;
        }
      }
    }
  }

  it("A1 to A13 together: each write has one effect and one report to the ledger, lanes advance", async () => {
    const next = random(SEED);
    const ids = Array.from({ length: 6 }, freshAccountId);
    await Promise.all(ids.map((id, index) => (relayers[index % 2] as ChainInstance).chain.submit(newAccount(id))));
    // Deeper than the reorgs below: without its account a write is refused for good.
    await bed.mine(2);
    for (const line of lines) line.inject(weather(next));
    const writes = count(3, 40);
    let isOver = false;
    const reorgs = (async () => {
      while (!isOver) {
        await new Promise((resolve) => setTimeout(resolve, 900));
        await bed.provider.send("anvil_reorg", [1 + Math.floor(next() * 2), []]);
        await bed.mine();
      }
    })();
    await Promise.all(
      ids.map(async (id, index) => {
        for (let write = 0; write < writes; write++)
          await writeOnce((relayers[(index + write) % 2] as ChainInstance).chain, id, `g${write}`);
      }),
    );
    isOver = true;
    await reorgs;
    for (const line of lines) line.heal();
    const { chain } = relayers[0] as ChainInstance;
    await eventually(
      "everything has an outcome",
      async () => Object.values((await chain.stats()).open).every((open) => open === 0),
      60_000,
    );
    for (const id of ids) {
      await eventually(`each write of ${id} landed once`, async () => (await bed.groupCount(id)) === writes, 20_000);
      const { items } = await chain.groups(id, { offset: 0, limit: 1_000 });
      expect(items.map(({ name }) => name).sort()).to.deep.equal(
        Array.from({ length: writes }, (_, write) => `g${write}`).sort(),
      );
    }
    expect(new Set(bed.outcomes.map(({ submissionId }) => submissionId)).size).to.equal(bed.outcomes.length);
    expect(bed.outcomes.filter(({ charged, kind }) => charged && kind === "add_group")).to.have.length(
      ids.length * writes,
    );
    for (const { payer, address } of (await chain.stats()).lanes.filter((lane) => lane.payer > 0)) {
      await eventually("the counter is the chain's", async () => {
        const lane = await bed.store.db
          .selectFrom("lanes")
          .select("next_nonce")
          .where("payer", "=", payer)
          .executeTakeFirstOrThrow();
        return lane.next_nonce === (await bed.provider.getTransactionCount(address));
      });
    }
    await chain.submit(addGroup(ids[0] as AccountId, "after the storm"));
  });
});
