/**
 * Random histories of a chain and of two relayers that search its logs for triggers: blocks, reorganisations of any
 * depth, endpoints that do not answer, statements that fail before or after they took effect, triggers that join.
 * However it went, each log that stayed fires once, and none before it had its confirmations.
 */
import { randomBytes } from "node:crypto";
import { mock } from "node:test";
import { expect } from "chai";
import fc from "fast-check";
import { Kysely, PostgresDialect, sql, type PostgresPool } from "kysely";
import type { AccountId, Address, KeyId } from "../../../protocol/ids";
import type { Block, FoundLogs, Header } from "../../../relayer/chain/events/blockLogs";
import type { ChainLog } from "../../../relayer/chain/events/eventRows";
import type { LogSource } from "../../../relayer/chain/events/logSource";
import type { Store } from "../../../relayer/store";
import type { Database } from "../../../relayer/store/database";
import { TRIGGER_LIMITS } from "../../../protocol/limits";
import { TriggerBook } from "../../../relayer/triggers/book";
import { LogSearch } from "../../../relayer/triggers/logs";
import { SEED, count } from "../../support/counts";
import { longestHold } from "../../support/ops";
import { testDatabaseUrl } from "../../support/store";
import { StatementFaults, failingPool } from "../../support/statementFaults";
import { firingsRead } from "../../support/statements";
import { openTestStore } from "../../support/testStore";

const hash = (): string => `0x${randomBytes(32).toString("hex")}`;
const ADDRESSES = [1, 2].map((n) => `0x${String(n).repeat(40)}` as Address);
const TOPICS = [1, 2].map((n) => `0x${String(n).repeat(64)}`);

/** A transaction's logs: the same in whichever block it is. */
interface Transaction {
  readonly hash: string;
  readonly logs: readonly { readonly address: Address; readonly topic: string }[];
}
type MinedBlock = Header & { readonly transactions: readonly Transaction[] };

class ModelChain implements LogSource {
  blocks: MinedBlock[] = [
    { ...{ number: 0, hash: hash(), parentHash: hash() }, logsBloom: undefined, transactions: [] },
  ];
  isSilent = false;
  /** A contract whose logs nobody returns any more. */
  unread: string | undefined;
  /** Questions about logs, each of a block. */
  asked = 0;
  /** Called after each change. */
  onChange: () => void = () => undefined;

  get top(): MinedBlock {
    return this.blocks.at(-1) as MinedBlock;
  }

  mine(...blocks: (readonly Transaction[])[]): void {
    for (const transactions of blocks) {
      const { number, hash: parentHash } = this.top;
      this.blocks.push({ number: number + 1, hash: hash(), parentHash, logsBloom: undefined, transactions });
      this.onChange();
    }
  }

  /** Other blocks take the place of the last ones, one more than before; of their transactions some are in them. */
  reorganise(depth: number, keep: boolean): void {
    const gone = this.blocks.splice(Math.max(1, this.blocks.length - depth));
    const kept = keep ? gone.flatMap(({ transactions }) => transactions) : [];
    this.mine(kept, ...gone.map(() => []));
  }

  async head(): Promise<Block | undefined> {
    return this.isSilent ? undefined : this.top;
  }

  async block(number: number): Promise<Header | undefined> {
    return this.isSilent ? undefined : this.blocks[number];
  }

  async logsOf(block: Header, addresses: readonly string[]): Promise<FoundLogs | undefined> {
    this.asked += 1;
    const mined = this.blocks.find((one) => one.hash === block.hash);
    if (this.isSilent || mined === undefined) return undefined;
    const those = logsOf(mined).filter(({ address }) => addresses.includes(address));
    const unread = addresses.filter((address) => address === this.unread);
    return { found: Map.groupBy(those, ({ address }) => address), unread };
  }
}

const logsOf = ({ number, hash: blockHash, transactions }: MinedBlock): ChainLog[] =>
  transactions
    .flatMap((transaction) => transaction.logs.map((log) => ({ ...log, transactionHash: transaction.hash })))
    .map(({ address, topic, transactionHash }, index) => ({
      ...{ address, blockHash, transactionHash, topics: [topic], data: "0x" },
      ...{ blockNumber: `0x${number.toString(16)}`, logIndex: `0x${index.toString(16)}` },
    }));

interface Watch {
  readonly id: string;
  readonly address: Address;
  readonly topic: string | undefined;
  readonly confirmations: number;
  readonly from: number;
  /** Every cause that was ever deep enough. */
  readonly allowed: Set<string>;
}

function causesIn(chain: ModelChain, { address, topic, confirmations, from }: Watch): string[] {
  const deep = chain.blocks.filter(({ number }) => number >= from && number <= chain.top.number - confirmations + 1);
  return deep.flatMap(({ transactions }) =>
    transactions.flatMap((transaction) =>
      transaction.logs
        .filter((log) => log.address === address && (topic === undefined || log.topic === topic))
        .map((_, place) => `log:${transaction.hash}:${place}`),
    ),
  );
}

type Step =
  | { readonly do: "mine"; readonly logs: readonly (readonly [number, number])[] }
  | { readonly do: "reorg"; readonly depth: number; readonly keep: boolean }
  | { readonly do: "watch"; readonly address: number; readonly topic: number; readonly confirmations: number }
  | { readonly do: "turn"; readonly relayer: number; readonly fault: number; readonly after: boolean }
  | { readonly do: "both" }
  | { readonly do: "silence"; readonly on: boolean };

const kind = <Do extends string>(name: Do) => fc.constant(name);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: kind("mine"), logs: fc.array(fc.tuple(fc.nat(1), fc.nat(1)), { maxLength: 3 }) }),
  },
  { weight: 3, arbitrary: fc.record({ do: kind("reorg"), depth: fc.integer({ min: 1, max: 6 }), keep: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      ...{ do: kind("watch"), address: fc.nat(1), topic: fc.nat(2) },
      confirmations: fc.constantFrom(1, 2, 4),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ do: kind("turn"), relayer: fc.nat(1), after: fc.boolean() },
      fault: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 25 })),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ do: "both" as const }) },
  { weight: 1, arbitrary: fc.record({ do: kind("silence"), on: fc.boolean() }) },
);

describe("histories of event triggers", function () {
  this.timeout(300_000);
  let store: Store;
  let pool: PostgresPool;
  before(async () => {
    store = await openTestStore({ databaseUrl: testDatabaseUrl, around: (inner) => (pool = inner) });
  });
  after(() => store?.close());

  class World {
    readonly chain = new ModelChain();
    readonly watches: Watch[] = [];
    /** Told of as paused. */
    readonly paused: string[] = [];
    readonly #account = hash() as AccountId;
    readonly #faults = [new StatementFaults(), new StatementFaults()];
    readonly #searches = this.#faults.map((faults) => {
      const db = new Kysely<Database>({ dialect: new PostgresDialect({ pool: failingPool(pool, faults) }) });
      const onPaused = async (_: unknown, { id }: { id: string }): Promise<void> => void this.paused.push(id);
      return new LogSearch({ db, sources: new Map([[0, this.chain]]), onPaused });
    });

    constructor() {
      this.chain.onChange = () => {
        for (const watch of this.watches) for (const cause of causesIn(this.chain, watch)) watch.allowed.add(cause);
      };
    }

    async watch(address: number, topic: number, confirmations: number): Promise<void> {
      const event = { address: ADDRESSES[address] as string, topics: TOPICS.slice(topic, topic + 1), confirmations };
      const id = randomBytes(16).toString("hex");
      const book = new TriggerBook(store.db);
      await book.add({
        ...{ id, accountId: this.#account, keyId: hash() as KeyId, name: "t", kind: "event", settings: { event } },
        ...{ cid: "Qm" as never, paramsSha256: "", code: undefined, sealed: "" },
      });
      await book.activate(id, ["unattached"], this.chain.top.number);
      this.watches.push({
        ...{ id, address: event.address as Address, topic: event.topics[0], confirmations },
        ...{ from: this.chain.top.number + 1, allowed: new Set() },
      });
    }

    async turn(relayer: number, fault = 0, after = false): Promise<void> {
      const faults = this.#faults[relayer] as StatementFaults;
      if (fault > 0) faults.arm(fault, after ? "after" : "before");
      await this.#searches[relayer]?.turn().catch((error: unknown) => {
        if (fault === 0) throw error;
      });
      faults.disarm();
    }

    async take(one: Step): Promise<void> {
      if (one.do === "mine")
        this.chain.mine([
          {
            hash: hash(),
            logs: one.logs.map(([a, t]) => ({ address: ADDRESSES[a] as Address, topic: String(TOPICS[t]) })),
          },
        ]);
      else if (one.do === "reorg") this.chain.reorganise(one.depth, one.keep);
      else if (one.do === "watch") await this.watch(one.address, one.topic, one.confirmations);
      else if (one.do === "silence") this.chain.isSilent = one.on;
      else if (one.do === "both") await Promise.all([this.turn(0), this.turn(1)]);
      else await this.turn(one.relayer, one.fault, one.after);
    }

    async check(): Promise<void> {
      this.chain.isSilent = false;
      this.chain.mine([], [], [], []);
      for (let turn = 0; turn < 8; turn += 1) await this.turn(turn % 2);
      const rows = await store.db
        .selectFrom("trigger_firings")
        .selectAll()
        .where("account_id", "=", this.#account)
        .execute();
      for (const watch of this.watches) {
        const fired = rows.filter(({ trigger_id }) => trigger_id === watch.id).map(({ cause_key }) => cause_key);
        expect(new Set(fired).size, "a log fired twice").to.equal(fired.length);
        expect(fired, "a log was forgotten").to.include.members(causesIn(this.chain, watch));
        for (const cause of fired) expect(watch.allowed.has(cause), "fired before its confirmations").to.equal(true);
      }
      this.#requireBlocks(rows);
    }

    /** The keyholder finds a log only in the block that has it now. */
    #requireBlocks(rows: readonly { readonly cause: unknown; readonly cause_key: string }[]): void {
      const mined = this.chain.blocks.flatMap(({ hash: block, transactions }) =>
        transactions.map((transaction) => [transaction.hash, block] as const),
      );
      const blockOf = new Map(mined);
      for (const { cause, cause_key } of rows) {
        const { transactionHash, blockHash } = cause as {
          readonly transactionHash: string;
          readonly blockHash: string;
        };
        const now = blockOf.get(transactionHash);
        if (now !== undefined) expect(blockHash, `${cause_key} waits for a block that is gone`).to.equal(now);
      }
    }

    async stop(): Promise<void> {
      await store.db.deleteFrom("triggers").where("account_id", "=", this.#account).execute();
      await store.db.deleteFrom("trigger_scans").execute();
    }
  }

  async function play(steps: readonly Step[]): Promise<void> {
    const world = new World();
    try {
      await world.watch(0, 0, 1);
      await world.watch(0, 2, 2);
      for (const one of steps) await world.take(one);
      await world.check();
    } finally {
      await world.stop();
    }
  }

  it("fire each log that stays once, and none early", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) => play(steps)),
      { numRuns: count(25, 1_000), seed: SEED },
    );
  });

  it("pause a trigger whose contract logs more than its runs can follow, and tell so once", async () => {
    const world = new World();
    await world.watch(0, 0, 1);
    const logs = Array.from({ length: TRIGGER_LIMITS.waitingPerAccount + 1 }, () => [0, 0] as const);
    await world.take({ do: "mine", logs });
    await world.turn(0);
    await world.take({ do: "mine", logs: [[0, 0]] });
    await world.turn(1);
    const [watch] = world.watches;
    expect(world.paused).to.deep.equal([watch?.id]);
    const { state, reason } = await new TriggerBook(store.db).one(String(watch?.id));
    expect(state).to.equal("paused");
    expect(reason).to.contain("More firings wait");
    await world.stop();
  });

  it("store no more firings of one account than are kept, however many triggers watch a busy contract", async () => {
    const world = new World();
    for (let count = 0; count < 12; count += 1) await world.watch(0, 0, 1);
    const most = TRIGGER_LIMITS.waitingPerAccount;
    const logs = Array.from({ length: most / 4 }, () => [0, 0] as const);
    const ids = world.watches.map(({ id }) => id);
    const waiting = async (): Promise<number> =>
      (await store.db.selectFrom("trigger_firings").select("id").where("trigger_id", "in", ids).execute()).length;
    await world.take({ do: "mine", logs });
    await world.turn(0);
    expect(await waiting()).to.equal(most);
    expect(world.paused, "of the others logs are missing").to.have.length(8);
    for (let block = 0; block < 8; block += 1) {
      await world.take({ do: "mine", logs });
      await world.turn(0);
    }
    expect(await waiting()).to.be.at.most(5 * most);
    await world.stop();
  });

  it("pause the triggers of a contract whose logs cannot be read, and go on with the others", async () => {
    const world = new World();
    for (const address of [0, 1, 0]) await world.watch(address, 0, 1);
    const ids = world.watches.map(({ id }) => id);
    world.chain.unread = ADDRESSES[0];
    await world.take({ do: "mine", logs: [] });
    await world.turn(0);
    expect(world.paused).to.have.members([ids[0], ids[2]]);
    await world.take({ do: "mine", logs: [[1, 0]] });
    await world.turn(0);
    const rows = await store.db
      .selectFrom("trigger_firings")
      .select("trigger_id")
      .where("trigger_id", "in", ids)
      .execute();
    expect(rows).to.deep.equal([{ trigger_id: ids[1] }]);
    await world.stop();
  });

  it("tell of a block that stops them for a minute", async () => {
    const world = new World();
    await world.watch(0, 0, 1);
    await world.take({ do: "mine", logs: [[0, 0]] });
    const { top } = world.chain;
    const logsOf = world.chain.logsOf.bind(world.chain);
    world.chain.logsOf = async () => undefined;
    const nowMs = Date.now();
    mock.timers.enable({ apis: ["Date"], now: nowMs });
    try {
      const told: number[] = [];
      for (let second = 0; second < 150; second += 1) {
        await world.turn(0).catch((error: Error) => {
          expect(error.message).to.contain(`block ${top.number} of chain 0`);
          told.push(second);
        });
        mock.timers.tick(1_000);
      }
      expect(told).to.deep.equal([60, 121]);
    } finally {
      mock.timers.reset();
    }
    world.chain.logsOf = logsOf;
    await world.check();
    await world.stop();
  });

  it("hold up nothing else while a thousand triggers watch a contract that logs ten thousand times", async () => {
    const world = new World();
    for (let count = 0; count < 2; count += 1) await world.watch(0, count, 1);
    const [first, second] = world.watches.map(({ id }) => id);
    // As many as an account may have, of both kinds: those that every log fits, and those that none does.
    await sql`insert into triggers (id, account_id, key_id, name, kind, settings, cid, params_sha256, sealed, state,
        from_block)
      select id || n, account_id, key_id || n, name, kind, settings, cid, params_sha256, sealed, state, from_block
      from triggers, generate_series(1, 499) n where id in (${first}, ${second})`.execute(store.db);
    const logs = Array.from({ length: 10_000 }, () => [0, 0] as const);
    await world.take({ do: "mine", logs });
    const heldMs = await longestHold(() => world.turn(0));
    const { rows } = await sql`select id from trigger_firings where trigger_id like ${`${first}%`}`.execute(store.db);
    expect(rows).to.have.length(TRIGGER_LIMITS.waitingPerAccount);
    expect(world.paused).to.have.length(500);
    expect(heldMs).to.be.below(1_000);
    await world.stop();
  });

  it("count what waits for an account once in a block, and not for each of its triggers", async () => {
    const [triggers, waiting] = [300, 3_000];
    const world = new World();
    await world.watch(0, 0, 1);
    const first = String(world.watches[0]?.id);
    await sql`insert into triggers (id, account_id, key_id, name, kind, settings, cid, params_sha256, sealed, state,
        from_block)
      select id || n, account_id, key_id || n, name, kind, settings, cid, params_sha256, sealed, state, from_block
      from triggers, generate_series(2, ${triggers}::int4) n where id = ${first}`.execute(store.db);
    await sql`insert into trigger_firings (id, trigger_id, account_id, cause_key, kind, state, due_at, not_before)
      select md5(random()::text), id, account_id, n::text, kind, 'waiting', now(), now()
      from triggers, generate_series(1, ${waiting / triggers}::int4) n where id like ${`${first}%`}`.execute(store.db);
    await sql`analyze trigger_firings`.execute(store.db);
    await world.take({ do: "mine", logs: [[0, 0]] });
    const before = await firingsRead(store.db);
    await world.turn(0);
    const read = (await firingsRead(store.db)) - before;
    if (testDatabaseUrl === undefined) expect(read, "each is looked at").to.be.at.least(waiting);
    expect(read).to.be.below(3 * (waiting + triggers));
    expect(world.paused).to.deep.equal([]);
    await world.stop();
  });

  it("pause all triggers of an account that has more waiting than is kept, and those of no other", async () => {
    const [crowded, other] = [new World(), new World()];
    for (const world of [crowded, other]) await world.watch(0, 0, 1);
    await crowded.watch(0, 0, 1);
    await crowded.watch(1, 0, 1);
    await sql`insert into trigger_firings (id, trigger_id, account_id, cause_key, kind, state, due_at, not_before)
      select md5(random()::text), id, account_id, n::text, kind, 'waiting', now(), now()
      from triggers, generate_series(1, ${TRIGGER_LIMITS.waitingOfLogs}::int4) n
      where id = ${crowded.watches[2]?.id}`.execute(store.db);
    await crowded.take({ do: "mine", logs: [[0, 0]] });
    await crowded.turn(0);
    const ids = crowded.watches.map(({ id }) => id);
    expect(crowded.paused, "of those that its logs fire").to.have.members(ids.slice(0, 2));
    expect((await new TriggerBook(store.db).one(String(other.watches[0]?.id))).state).to.equal("active");
    for (const world of [crowded, other]) await world.stop();
  });

  it("look again for a log that was given up, once it is in another block", async () => {
    const world = new World();
    await world.watch(0, 0, 1);
    await world.take({ do: "mine", logs: [[0, 0]] });
    await world.turn(0);
    const outcome = "log_not_found";
    const id = String(world.watches[0]?.id);
    const ended = { state: "ended" as const, cause: null, outcome };
    await store.db.updateTable("trigger_firings").set(ended).where("trigger_id", "=", id).execute();
    await world.take({ do: "reorg", depth: 1, keep: true });
    await world.check();
    const row = store.db.selectFrom("trigger_firings").select(["state", "outcome"]).where("trigger_id", "=", id);
    expect(await row.execute()).to.deep.equal([{ state: "waiting", outcome: null }]);
    await world.stop();
  });

  it("ask once about a block and depth, whatever watches it, and not again until there is a new block", async () => {
    const world = new World();
    for (let count = 0; count < 10; count += 1) await world.watch(count % 2, 0, 1);
    await world.take({ do: "mine", logs: [[0, 0]] });
    for (let turn = 0; turn < 3; turn += 1) await world.turn(0);
    expect(world.chain.asked).to.equal(1);
    await world.check();
    await world.stop();
  });

  it("hold where a block goes whose log has fired, and comes back with it", async () => {
    const logs = [[0, 0]] as const;
    const turn = { do: "turn", relayer: 0, fault: 0, after: false } as const;
    await play([{ do: "mine", logs }, turn, { do: "reorg", depth: 1, keep: true }, turn, { do: "mine", logs }, turn]);
    await play([
      { do: "mine", logs },
      turn,
      { do: "reorg", depth: 1, keep: false },
      turn,
      { do: "mine", logs: [] },
      turn,
    ]);
  });
});
