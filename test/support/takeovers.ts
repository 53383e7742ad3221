/**
 * One relayer pauses at a given step, its lease expires, another takes over; then the first resumes. For both stores.
 */
import { expect } from "chai";
import type { AccountId } from "../../protocol/ids";
import type { ExecutorAnswer, ExecutorRequest } from "../../protocol/executor";
import type { ExecutorPort, ExecutorWriteCall, SubmitAnswer } from "../../relayer/chain/types";
import { addGroup, type ChainBed, eventually, freshAccountId, newAccount, type ChainInstance } from "./chainBed";
import { RpcProxy, type Fault } from "./rpcProxy";

/** Blocks callers until opened. */
class Gate {
  #open: () => void = () => undefined;
  readonly #opened = new Promise<void>((resolve) => (this.#open = resolve));
  reached = false;
  pass(): Promise<void> {
    this.reached = true;
    return this.#opened;
  }
  open(): void {
    this.#open();
  }
}

class GatedExecutor implements ExecutorPort {
  gate: { readonly at: ExecutorWriteCall; readonly gate: Gate } | undefined;
  readonly #real: ExecutorPort;

  constructor(real: ExecutorPort) {
    this.#real = real;
  }
  async call<C extends ExecutorWriteCall>(name: C, request: ExecutorRequest<C>): Promise<ExecutorAnswer<C>> {
    if (this.gate?.at === name) await this.gate.gate.pass();
    return this.#real.call(name, request);
  }
}

const holdBefore =
  (gate: Gate): Fault =>
  async (_call, forward) => {
    await gate.pass();
    return forward();
  };
const holdAfter =
  (gate: Gate): Fault =>
  async (_call, forward) => {
    const answer = await forward();
    await gate.pass();
    return answer;
  };

interface Step {
  readonly name: string;
  /** Whether the submission is stored by then, so that another relayer can continue it. */
  readonly writtenDown: boolean;
  readonly arrange: (executor: GatedExecutor, proxy: RpcProxy, gate: Gate) => void;
}

const STEPS: readonly Step[] = [
  {
    name: "while it simulates",
    writtenDown: false,
    arrange: (_, proxy, gate) => proxy.injectTimes(1, "eth_estimateGas", holdBefore(gate)),
  },
  {
    name: "while it has the write authorised",
    writtenDown: false,
    arrange: (executor, _, gate) => void (executor.gate = { at: "authorizeWrites", gate }),
  },
  {
    name: "before the signature",
    writtenDown: true,
    arrange: (executor, _, gate) => void (executor.gate = { at: "signAsPayer", gate }),
  },
  {
    name: "before the node has it",
    writtenDown: true,
    arrange: (_, proxy, gate) => proxy.injectTimes(1, "eth_sendRawTransaction", holdBefore(gate)),
  },
  {
    name: "after the node took it",
    writtenDown: true,
    arrange: (_, proxy, gate) => proxy.injectTimes(1, "eth_sendRawTransaction", holdAfter(gate)),
  },
  {
    name: "before the receipt",
    writtenDown: true,
    arrange: (_, proxy, gate) => proxy.injectTimes(1, "eth_getTransactionReceipt", holdBefore(gate)),
  },
  {
    name: "with the receipt received",
    writtenDown: true,
    arrange: (_, proxy, gate) => proxy.injectTimes(1, "eth_getTransactionReceipt", holdAfter(gate)),
  },
];

/** Longer than the test, so that a pause does not become a time-out. */
const PATIENT = { rpcTimeoutMs: 60_000, rpcDeadlineMs: 60_000, answerWithinMs: 60_000 };

export function describeTakeovers(startBed: () => Promise<ChainBed>): void {
  let bed: ChainBed;
  let other: ChainInstance;
  before(async () => {
    bed = await startBed();
    other = await bed.open();
  });
  after(() => bed?.stop());

  async function account(): Promise<AccountId> {
    const id = freshAccountId();
    await other.chain.submit(newAccount(id));
    return id;
  }

  async function lanesAreWell(): Promise<void> {
    await eventually("no submission is open", async () =>
      Object.values((await other.chain.stats()).open).every((count) => count === 0),
    );
    const lanes = await bed.store.db.selectFrom("lanes").selectAll().where("payer", ">", 0).execute();
    for (const { address, next_nonce } of lanes)
      expect(next_nonce).to.equal(await bed.provider.getTransactionCount(address));
    bed.expectToldOnce();
  }

  for (const { name, writtenDown, arrange } of STEPS) {
    it(`A11: a relayer that pauses ${name} repeats nothing and loses nothing`, async () => {
      const id = await account();
      const proxy = await RpcProxy.start(bed.node.rpcUrl);
      const executor = new GatedExecutor(bed.executor);
      const sleeper = await bed.open({ rpcUrls: [proxy.url], executor, renewsLease: false, tuning: PATIENT });
      const gate = new Gate();
      arrange(executor, proxy, gate);
      const writing: Promise<SubmitAnswer> = sleeper.chain.submit(addGroup(id, "once", { reserve: async () => true }));
      await eventually("it stands still", () => gate.reached);
      await bed.expire(sleeper);
      if (writtenDown) {
        await eventually("the other has carried it on", async () => (await bed.groupCount(id)) === 1);
        await eventually("with its outcome", async () =>
          Object.values((await other.chain.stats()).open).every((count) => count === 0),
        );
      } else {
        await other.chain.submit(addGroup(id, "in between"));
      }
      gate.open();
      const answer = await writing;
      expect(answer.result.group_id).to.equal(writtenDown ? "1" : "2");
      expect(await bed.groupCount(id)).to.equal(writtenDown ? 1 : 2);
      await lanesAreWell();
      await sleeper.close();
      await proxy.stop();
    });
  }

  it("A11: two relayers on one lane write for many accounts at once, each write exactly once", async () => {
    const second = await bed.open();
    const ids = await Promise.all(Array.from({ length: 12 }, account));
    const relayers = [other, second];
    await Promise.all(
      ids.flatMap((id) =>
        relayers.flatMap((relayer) =>
          [0, 1].map(() => relayer.chain.submit(addGroup(id, "shared", { reserve: async () => true }))),
        ),
      ),
    );
    for (const id of ids) expect(await bed.groupCount(id)).to.equal(4);
    await lanesAreWell();
    await second.close();
  });

  it("A12: a write through one relayer is seen at once through the other", async () => {
    const second = await bed.open();
    for (let time = 0; time < 5; time++) {
      const id = await account();
      expect((await second.chain.key([id as never]))?.live).to.equal(true);
      const { result } = await second.chain.submit(addGroup(id, "there"));
      expect(
        (await other.chain.groups(id, { offset: 0, limit: 10 })).items.map((group) => String(group.id)),
      ).to.deep.equal([result.group_id]);
    }
    await second.close();
  });

  it("A9: the pool grows and shrinks without a stop", async () => {
    await bed.registerPayers(bed.payers + 1, bed.payers + 2);
    const grown = await bed.open({ payerCount: bed.payers + 2 });
    await eventually(
      "the new lanes are used",
      async () => (await other.chain.stats()).lanes.filter(({ usable }) => usable).length === bed.payers + 2,
    );
    // Sequential, since concurrent writes share a transaction.
    for (let time = 0; time < 3 * (bed.payers + 2); time++) await account();
    const used = await bed.provider.getTransactionCount(bed.executor.wallet(bed.payers + 2).address);
    expect(used).to.be.greaterThan(0);
    const shrunk = await bed.open({ payerCount: bed.payers });
    await eventually(
      "they drain",
      async () => (await other.chain.stats()).lanes.filter(({ usable }) => usable).length === bed.payers,
    );
    const settled = await bed.provider.getTransactionCount(bed.executor.wallet(bed.payers + 2).address);
    await Promise.all(Array.from({ length: 10 }, account));
    expect(await bed.provider.getTransactionCount(bed.executor.wallet(bed.payers + 2).address)).to.equal(settled);
    await lanesAreWell();
    await grown.close();
    await shrunk.close();
  });

  it("A9: a full pool makes writes wait, and refuses what waits too long", async () => {
    const narrow = await bed.open({ tuning: { maxInFlightPerLane: 1 } });
    await bed.provider.send("evm_setAutomine", [false]);
    const ids = Array.from({ length: bed.payers }, freshAccountId);
    const blocking: Promise<SubmitAnswer>[] = [];
    // Sequential, since concurrent writes share a transaction and a lane would stay free.
    for (const id of ids) {
      blocking.push(narrow.chain.submit(newAccount(id)));
      await eventually("one more lane is busy", async () => (await narrow.chain.stats()).open.sent === blocking.length);
    }
    const refused = await narrow.chain.submit(newAccount(freshAccountId(), { waitMs: 300 })).then(
      () => undefined,
      (error: { code: string }) => error.code,
    );
    await bed.provider.send("evm_setAutomine", [true]);
    await bed.mine();
    await Promise.all(blocking);
    expect(refused).to.equal("no_payer_available");
    await lanesAreWell();
    await narrow.close();
  });
}
