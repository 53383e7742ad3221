/**
 * Logs of many contracts in a block, from endpoints that may be behind, leave contracts out, refuse or answer about
 * another block: few queries, and no log that the bloom promises is missing.
 */
import { randomBytes } from "node:crypto";
import { mock } from "node:test";
import { expect } from "chai";
import fc from "fast-check";
import type { RpcCall } from "../../../../protocol/rpc/endpoint";
import { RpcError } from "../../../../protocol/rpc/errors";
import { BlockLogs, type Header } from "../../../../relayer/chain/events/blockLogs";
import { BloomQuestion } from "../../../../relayer/chain/events/bloom";
import type { ChainLog } from "../../../../relayer/chain/events/eventRows";
import { RpcClient } from "../../../../relayer/chain/rpc/client";
import { bloomOf } from "../../../support/bloom";
import { SEED, count } from "../../../support/counts";

const random = (bytes: number): string => `0x${randomBytes(bytes).toString("hex")}`;
const HASH = random(32);
const FULL = `0x${"ff".repeat(256)}`;
const logOf = (address: string, blockHash = HASH): ChainLog => ({
  ...{ address, blockHash, blockNumber: "0x1", transactionHash: random(32), logIndex: "0x0", topics: [], data: "0x" },
});

const MOODS = ["honest", "empty", "leaves one out", "refuses", "other block", "no receipts", "few receipts"] as const;
type Mood = (typeof MOODS)[number];

/** A block of these contracts' logs, and endpoints that know it. */
class World {
  readonly logs: readonly ChainLog[];
  readonly asked: RpcCall[] = [];
  /** Contracts that an endpoint takes in one query. */
  most = Infinity;
  /** Contracts whose logs none returns. */
  unreadable: readonly string[] = [];
  unread: readonly string[] = [];
  readonly reader: BlockLogs;

  constructor(
    logging: readonly string[],
    readonly moods: readonly Mood[],
    readonly bloom = bloomOf(logging),
  ) {
    this.logs = logging.map((address) => logOf(address));
    const rpc = new RpcClient({
      ...{ chainId: 1n, urls: moods.map((_, index) => String(index)), timeoutMs: 100, deadlineMs: 100 },
      connect: (url) => ({
        callTogether: async (calls) => calls.map((call) => this.#answer(moods[Number(url)] as Mood, call)),
        close: async () => undefined,
      }),
    });
    this.reader = new BlockLogs(rpc);
  }

  block(madeAtMs = Date.now()): Header {
    return { number: 1, hash: HASH, parentHash: random(32), logsBloom: this.bloom, madeAtMs };
  }

  asks(method: string): number {
    return this.asked.filter((call) => call.method === method).length;
  }

  async of(addresses: readonly string[], block = this.block()): Promise<readonly string[] | undefined> {
    const questions = addresses.map((address) => new BloomQuestion(address, []));
    const found = await this.reader.of(block, questions);
    this.unread = found?.unread ?? [];
    return found && addresses.filter((address) => found.found.get(address)?.length === 1);
  }

  #answer(mood: Mood, call: RpcCall): { value: unknown } | { error: RpcError } {
    if (call.method === "eth_chainId") return { value: "0x1" };
    this.asked.push(call);
    const refused = { error: new RpcError("refused", "no") };
    if (mood === "refuses") return refused;
    if (call.method === "eth_getBlockReceipts") return { value: this.#receipts(mood) };
    const { address } = call.params[0] as { readonly address: string | readonly string[] };
    const addresses = [address].flat();
    if (addresses.length > this.most || addresses.some((one) => this.unreadable.includes(one))) return refused;
    const logs = this.logs.filter((log) => addresses.includes(log.address));
    if (mood === "empty") return { value: [] };
    if (mood === "leaves one out") return { value: logs.slice(1) };
    return { value: mood === "other block" ? logs.map((log) => logOf(log.address, random(32))) : logs };
  }

  #receipts(mood: Mood): unknown {
    if (mood === "no receipts" || mood === "empty" || mood === "other block") return null;
    const receipts = this.logs.map((log) => ({ blockHash: HASH, logsBloom: bloomOf([log.address]), logs: [log] }));
    return mood === "honest" ? receipts : receipts.slice(1);
  }
}

describe("logs of many contracts in a block", function () {
  this.timeout(60_000);
  const addresses = Array.from({ length: 1_000 }, () => random(20));

  it("take two queries for a thousand of them, even where the bloom is too full to rule any out", async () => {
    const world = new World(addresses.slice(0, 20), ["honest"], FULL);
    expect(await world.of(addresses)).to.deep.equal(addresses.slice(0, 20));
    expect(world.asked).to.have.length(2);
  });

  it("are complete or not known, whatever each endpoint leaves out", async () => {
    const few = fc.constantFrom(Infinity, 1, 2);
    const moods = fc.array(fc.constantFrom(...MOODS), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(moods, fc.integer({ min: 1, max: 4 }), fc.nat(4), few, async (each, logging, idle, most) => {
        const world = new World(addresses.slice(0, logging), each);
        world.most = most;
        const found = await world.of(addresses.slice(0, logging + idle));
        if (found !== undefined || each.includes("honest")) expect(found).to.deep.equal(addresses.slice(0, logging));
      }),
      { numRuns: count(200, 5_000), seed: SEED },
    );
  });

  it("that no endpoint has are accepted as missing only of a block that is old", async () => {
    const world = new World(addresses.slice(0, 2), ["empty"]);
    expect(await world.of(addresses)).to.equal(undefined);
    expect(await world.of(addresses, world.block(Date.now() - 16_000))).to.deep.equal([]);
    const silent = new World(addresses.slice(0, 2), ["refuses"]);
    expect(await silent.of(addresses, silent.block(0)), "nobody has said so").to.equal(undefined);
  });

  it("are read from the receipts once, for all that is asked about the block", async () => {
    const logging = addresses.slice(0, 100);
    const world = new World(logging, ["no receipts", "honest"]);
    // Contracts without logs that the bloom seems to hold.
    const isHeld = (address: string): boolean => new BloomQuestion(address, []).ask(world.bloom) === "yes";
    const ground: string[] = [];
    while (ground.length < 2) ground.push(...[random(20)].filter(isHeld));
    expect(await world.of([...logging, String(ground[0])])).to.deep.equal(logging);
    expect(await world.of(ground)).to.deep.equal([]);
    expect([world.asks("eth_getLogs"), world.asks("eth_getBlockReceipts")]).to.deep.equal([2, 2]);
  });

  it("are given up where they are too many for any answer, after a minute in which others are read", async () => {
    const logging = addresses.slice(0, 40);
    const world = new World(logging, ["no receipts"], FULL);
    const [first, other, last] = [logging[0], logging[20], logging[39]] as [string, string, string];
    const read = logging.filter((address) => ![first, last].includes(address));
    mock.timers.enable({ apis: ["Date"], now: Date.now() });
    try {
      world.unreadable = [first, last, other];
      expect(await world.of(addresses, world.block())).to.equal(undefined);
      mock.timers.tick(59_000);
      world.unreadable = [first, last];
      expect(await world.of(addresses, world.block()), "it may be answered yet").to.equal(undefined);
      mock.timers.tick(2_000);
      world.unreadable = [first, last, other];
      expect(await world.of(addresses, world.block()), "one was answered meanwhile").to.equal(undefined);
      world.unreadable = [first, last];
      expect(await world.of(addresses, world.block())).to.deep.equal(read);
      expect(world.unread).to.deep.equal([first, last]);
      const before = world.asked.length;
      expect(await world.of(addresses, world.block())).to.deep.equal(read);
      expect(world.asked.length - before, "queries").to.be.below(60);
      world.most = 0;
      mock.timers.tick(120_000);
      expect(await world.of(addresses, world.block()), "nobody has the block").to.equal(undefined);
      world.most = Infinity;
      expect(await world.of(addresses, world.block()), "nobody refused them meanwhile").to.equal(undefined);
    } finally {
      mock.timers.reset();
    }
  });

  it("are given up sooner by a reader that is far behind", async () => {
    const world = new World(addresses.slice(0, 2), ["no receipts"], FULL);
    world.unreadable = addresses.slice(0, 1);
    mock.timers.enable({ apis: ["Date"], now: Date.now() });
    try {
      expect(await world.of(addresses, world.block(0))).to.equal(undefined);
      mock.timers.tick(2_000);
      expect(await world.of(addresses, world.block(0))).to.deep.equal(addresses.slice(1, 2));
    } finally {
      mock.timers.reset();
    }
  });

  it("take few queries after one contract was refused alone", async () => {
    const world = new World(addresses.slice(0, 2), ["no receipts"], FULL);
    world.unreadable = addresses.slice(0, 1);
    expect(await world.of(addresses.slice(0, 1))).to.equal(undefined);
    world.unreadable = [];
    const before = world.asked.length;
    expect(await world.of(addresses)).to.deep.equal(addresses.slice(0, 2));
    expect(world.asked.length - before).to.be.below(5);
  });

  it("are found with endpoints that take few contracts in a query", async () => {
    const world = new World(addresses.slice(0, 3), ["honest", "no receipts"], FULL);
    world.most = 100;
    let found: readonly string[] | undefined;
    for (let turn = 0; turn < 6 && found === undefined; turn += 1) found = await world.of(addresses);
    expect(found).to.deep.equal(addresses.slice(0, 3));
  });
});
