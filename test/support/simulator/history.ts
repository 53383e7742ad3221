/**
 * A history: what clients ask for and what goes wrong, step by step. After its last step the world is whole again,
 * clients repeat what they have no final answer to, and the invariants must hold.
 */
import { sql } from "kysely";
import { KeywrightError } from "../../../protocol/errors";
import { rewind } from "../../../relayer/chain/events/reorg";
import { wantPayers } from "../../../relayer/chain/payers/wanted";
import { TRANSACTION_IS_OPEN, WRITE_IS_OPEN } from "../../../relayer/chain/submissions/states";
import { cancelSubmission } from "../../../relayer/chain/submissions/transactions";
import { dropOld } from "../../../relayer/store/retention";
import { seeded } from "../counts";
import { accountId, RICH, SimulatedChain } from "./chain";
import { withIdsOf } from "./chance";
import { Node } from "./endpoint";
import { violations } from "./invariants";
import "./once";
import { BLOCK_MS, encodedOnce, FINALITY_DEPTH, PAYERS, SimulatedRelayer, type World } from "./relayer";
import { hasOneChain, type History, type Step, type Wish } from "./steps";
import type { SimulatedStore } from "./stores";
import { SimulatedTime } from "./time";

const CHAIN_ID = 31_337;
const OTHER_CHAIN_ID = 8_453;
const OTHER_HEAD = 300;
/** Deeper than finality, and as short as histories are. */
const DETAIL_DAYS = 40 / 86_400;
/** By nodes that prune states. */
const COUNTS_KEPT = 3;
/** After the faults have ended, everything has to be settled within this time. */
const QUIET_MS = 180_000;
const LOOKS_BETWEEN_REPEATS = 6;
/** One history in so many waits until the leases of killed relayers expire. */
const HISTORIES_PER_EXPIRY = 4;
const REST_BLOCK_MS = 500;
/** Blocks that a follower in time may still have to read: those since it last looked, and while it reads. */
const MOST_BEHIND = 6;

/** One store for many histories, one after the other, each with a clock of its own. */
export class Simulator {
  readonly #store: SimulatedStore;

  constructor(store: SimulatedStore) {
    this.#store = store;
  }

  /** What the history ends with that must not be; nothing if all is well. */
  async run(history: History): Promise<readonly string[]> {
    // Histories make many errors. Where one was made is asked only if it ends its history, by running that again.
    return this.#run(history, 0).catch(async (error: unknown) => {
      await this.#run(history, Error.stackTraceLimit);
      throw error;
    });
  }

  async #run(history: History, stackTraceLimit: number): Promise<readonly string[]> {
    await this.#store.reset();
    const time = new SimulatedTime(this.#store.turnsOfStatement);
    const usual = Error.stackTraceLimit;
    Error.stackTraceLimit = stackTraceLimit;
    try {
      return await withIdsOf(history.seed, () => time.during(() => new Run(history, time, this.#store).run()));
    } finally {
      Error.stackTraceLimit = usual;
    }
  }
}

type OfChain = "no blocks" | "base fee" | "prune" | "reorg" | "drop pool" | "revive" | "use nonce" | "spend";

class Run {
  readonly wishes: Wish[] = [];
  readonly chain = new SimulatedChain(CHAIN_ID, 0);
  #other: SimulatedChain | undefined;
  relayers: SimulatedRelayer[] = [];
  #mines = true;
  #blockMs = BLOCK_MS;
  #isOver = false;
  /** The newest block that a reorg deeper than finality left. */
  #fork: number | undefined;
  #asking = 0;
  readonly #world: World;

  constructor(
    readonly history: History,
    readonly time: SimulatedTime,
    readonly store: SimulatedStore,
  ) {
    const nodes = Array.from(
      { length: history.endpoints },
      () => new Node(this.chain, () => this.#otherChain(), PAYERS),
    );
    this.#world = {
      time,
      pool: store.pool,
      nodes,
      chainId: CHAIN_ID,
      random: seeded(history.seed),
      executorFault: "none",
    };
  }

  async run(): Promise<readonly string[]> {
    await wantPayers(this.store.db, PAYERS);
    void this.#mineOn();
    for (let n = 0; n < this.history.relayers; n++) this.relayers.push(this.#opened());
    await this.#until(async () => (await this.relayers[0]?.chain?.ready())?.ready === true, 30_000);
    for (const step of this.history.steps) {
      await this.#take(step);
      await this.time.pass(10);
    }
    const isSettled = await this.#rest();
    const found = [...(await this.#askAgain()), ...(await violations(this, isSettled))];
    this.#isOver = true;
    for (const relayer of this.relayers) relayer.kill();
    return found;
  }

  get live(): SimulatedRelayer {
    return this.relayers.find(({ isAlive }) => isAlive) as SimulatedRelayer;
  }

  /** Another chain, with more blocks than the history's ever has. */
  #otherChain(): SimulatedChain {
    if (this.#other === undefined) {
      this.#other = new SimulatedChain(OTHER_CHAIN_ID, 0);
      for (let made = 0; made < OTHER_HEAD; made++) this.#other.mine();
    }
    return this.#other;
  }

  #opened(): SimulatedRelayer {
    const relayer = new SimulatedRelayer(this.#world);
    // A killed relayer never starts; a store that failed it lets it try again, as its supervisor does.
    const start = (): void =>
      void relayer.start().catch(async () => {
        await this.time.sleep(1_000);
        if (relayer.isAlive) start();
      });
    start();
    return relayer;
  }

  async #mineOn(): Promise<void> {
    while (!this.#isOver) {
      await this.time.sleep(this.#blockMs);
      if (this.#mines) this.chain.mine();
      this.#other?.mine();
    }
  }

  async #take(step: Step): Promise<void> {
    switch (step.do) {
      case "wait":
        return void (await this.time.pass(step.ms));
      case "write":
        return this.#write(step);
      case "burst":
      case "race":
        return this.#writeTogether(step);
      case "endpoint":
        return this.#faultOfEndpoint(step);
      case "executor":
        this.#world.executorFault = step.fault;
        return this.#later(step.ms, () => (this.#world.executorFault = "none"));
      case "clock":
        return this.time.jump(step.ms);
      case "fail statement":
        return this.relayers[step.relayer % this.relayers.length]?.failStatement(step.nth, step.side);
      case "kill":
        return this.#kill(step);
      case "cancel":
      case "resize":
      case "retention":
        return this.#operate(step);
      default:
        return this.#change(step);
    }
  }

  async #operate(step: Extract<Step, { do: "cancel" | "resize" | "retention" }>): Promise<void> {
    if (step.do === "cancel") return this.#cancel();
    if (step.do === "retention") return this.#dropOld();
    await wantPayers(this.store.db, step.payers);
  }

  #change(step: Extract<Step, { do: OfChain }>): void {
    switch (step.do) {
      case "no blocks":
        this.#mines = false;
        return this.#later(step.ms, () => (this.#mines = true));
      case "base fee":
        this.chain.baseFee = BigInt(step.times) * 10n ** 9n;
        return this.#later(step.ms, () => (this.chain.baseFee = 10n ** 9n));
      case "prune":
        return this.#prune(step.ms);
      case "reorg":
        return this.#reorg(step);
      case "drop pool":
        return this.chain.dropPool();
      case "revive":
        return this.chain.revive();
      case "use nonce":
        return this.chain.useNonce(step.payer);
      case "spend":
        return this.chain.spend(step.payer, BigInt(step.leftGwei) * 10n ** 9n);
    }
  }

  #reorg({ depth, keep }: Extract<Step, { do: "reorg" }>): void {
    const fork = Math.max(0, this.chain.head.number - depth);
    if (depth >= FINALITY_DEPTH) this.#fork = Math.min(fork, this.#fork ?? fork);
    this.chain.reorg(depth, keep);
  }

  /** What the operator does whose chain has dropped final blocks, once `/ready` says so. */
  async #rewindIfStopped(fork: number): Promise<void> {
    let problems: readonly string[] = [];
    void this.live.chain?.ready().then(
      (now) => (problems = now.problems),
      () => undefined,
    );
    await this.time.pass(1_000);
    const block = this.chain.block(fork);
    if (block === undefined || !problems.some((problem) => problem.includes("an operator rewinds"))) return;
    await rewind(this.store.db, { number: block.number, hash: block.hash });
    this.#fork = undefined;
  }

  #prune(ms: number): void {
    for (const node of this.#world.nodes) node.countsKept = COUNTS_KEPT;
    this.#later(ms, () => {
      for (const node of this.#world.nodes) node.countsKept = Infinity;
    });
  }

  async #cancel(): Promise<void> {
    const { rows } = await sql<{ id: string }>`select id from transactions where ${TRANSACTION_IS_OPEN}
      order by created_at desc, id limit 1`.execute(this.store.db);
    for (const { id } of rows) {
      const carried = await this.store.db.selectFrom("writes").select("id").where("transaction_id", "=", id).execute();
      if (!(await cancelSubmission(this.store.db, id))) continue;
      for (const wish of this.wishes)
        wish.isWithdrawn ||= wish.answer === "done" && carried.some((write) => write.id === wish.submission);
    }
  }

  #dropOld(): void {
    const { db } = this.live ?? this.store;
    void dropOld(db, { detailDays: DETAIL_DAYS, runRecordsDays: 30 }).catch(() => undefined);
  }

  #kill({ relayer: n, nth, side, downMs }: Extract<Step, { do: "kill" }>): void {
    const relayer = this.relayers[n % this.relayers.length] as SimulatedRelayer;
    if (nth === 0) relayer.kill();
    else relayer.killAt(nth, side);
    this.#later(downMs, () => {
      relayer.kill();
      this.relayers = this.relayers.map((each) => (each === relayer ? this.#opened() : each));
    });
  }

  #later(ms: number, then: () => void): void {
    void this.time.sleep(ms).then(() => {
      if (!this.#isOver) then();
    });
  }

  #faultOfEndpoint({ which, fault, ms }: Extract<Step, { do: "endpoint" }>): void {
    const { nodes } = this.#world;
    const hit = which === "all" ? nodes : nodes.slice(which % nodes.length, (which % nodes.length) + 1);
    for (const node of hit) {
      node.fault = fault;
      this.#later(ms, () => (node.fault = node.fault === fault ? "none" : node.fault));
    }
  }

  #writeTogether(step: Extract<Step, { do: "burst" | "race" }>): void {
    for (const [index, nature] of step.natures.entries()) {
      const [account, relayer] = step.do === "burst" ? [index, step.relayer] : [step.account, index];
      this.#write({ account, relayer, nature, repeats: true });
    }
  }

  #write({ account: n, relayer, nature, repeats }: Omit<Extract<Step, { do: "write" }>, "do">): void {
    const account = accountId(n);
    const name = `write ${this.wishes.length}`;
    const data = encodedOnce({ functionName: "addGroup", args: [account, name, "", [], []] });
    this.chain.calls.set(data, { account, name, nature });
    const wish: Wish = { account, name, nature, repeats, answer: "open" };
    this.wishes.push(wish);
    void this.#ask(wish, this.relayers[relayer % this.relayers.length] as SimulatedRelayer);
  }

  async #ask(wish: Wish, relayer: SimulatedRelayer): Promise<void> {
    this.#asking += 1;
    try {
      const { result, submissionId } = await relayer.addGroup(wish.account, wish.name, wish.name);
      wish.answer = "done";
      wish.submission = submissionId;
      wish.group = result.group_id ?? "";
    } catch (error) {
      if (!(error instanceof KeywrightError)) throw error;
      wish.error = error;
      if (REFUSALS.has(error.code)) wish.answer = "refused";
      else if (error.code === "not_authorized") wish.answer = "declined";
      else if (SAYS_IT_DID_NOT_HAPPEN.test(error.detail) && !wish.repeats) wish.answer = "told it did not happen";
    } finally {
      this.#asking -= 1;
    }
  }

  /** All faults end, relayers are restarted, and clients repeat their requests. */
  async #rest(): Promise<boolean> {
    this.#mines = true;
    // What waits for finality then waits for a fraction of the time.
    this.#blockMs = REST_BLOCK_MS;
    this.#world.executorFault = "none";
    this.chain.baseFee = 10n ** 9n;
    for (const node of this.#world.nodes) Object.assign(node, { fault: "none", countsKept: Infinity });
    // The admin payer's alone: it tops up the others.
    this.chain.spend(0, RICH);
    this.relayers = this.relayers.map((relayer) => {
      relayer.killAt(Infinity, "before");
      relayer.failStatement(Infinity, "before");
      return relayer.isAlive ? relayer : this.#opened();
    });
    if (this.history.seed % HISTORIES_PER_EXPIRY !== 0) await this.#endLeases();
    const end = this.time.now + QUIET_MS;
    await this.time.pass(1_000);
    while (this.time.now < end) {
      if (this.#fork !== undefined) await this.#rewindIfStopped(this.#fork);
      for (const relayer of this.relayers) void relayer.tidy().catch(() => undefined);
      for (const wish of this.wishes.filter(({ answer }) => answer === "open")) void this.#ask(wish, this.live);
      for (let look = 0; look < LOOKS_BETWEEN_REPEATS; look++) {
        await this.time.pass(1_000);
        if (this.wishes.every(({ answer }) => answer !== "open") && (await this.#isQuiet())) return true;
      }
    }
    return false;
  }

  /** Of killed relayers, as where their session locks show that they are dead. */
  async #endLeases(): Promise<void> {
    const alive = this.relayers.map(({ instance }) => instance.id);
    await this.store.db.deleteFrom("instances").where("id", "not in", alive).execute();
  }

  /** A key asked again answers the write that it made; what the write made a second time is seen afterwards. */
  async #askAgain(): Promise<readonly string[]> {
    const found: string[] = [];
    // What a reorg has made of an account's first write is seen in the books.
    const isSure = ({ nature, isWithdrawn }: Wish): boolean =>
      isWithdrawn !== true && (nature !== "first" || hasOneChain(this.history));
    const done = this.wishes.filter((wish) => wish.answer === "done" && isSure(wish));
    let answers = 0;
    for (const { account, name, submission } of done)
      void this.live
        .addGroup(account, name, name)
        .then(
          ({ submissionId }) => submissionId === submission || found.push(`${name} asked again is another write`),
          (error: unknown) => found.push(`${name} asked again: ${String(error)}`),
        )
        .finally(() => (answers += 1));
    await this.time.pass(5_000, () => answers === done.length);
    // A second write, if one was begun, is given the time to be mined.
    if (!(await this.#isQuiet())) await this.time.pass(5_000);
    return found;
  }

  async #isQuiet(): Promise<boolean> {
    const { rows } = await sql<{ open: number; newest: number }>`
      select (select count(*)::int4 from transactions where ${TRANSACTION_IS_OPEN})
          + (select count(*)::int4 from writes where ${WRITE_IS_OPEN}) as open,
        (select coalesce(max(block_number), 0)::int4 from transactions) as newest`.execute(this.store.db);
    const { open, newest } = rows[0] ?? { open: 1, newest: 0 };
    const blocks = this.store.db.selectFrom("followed_blocks").selectAll().orderBy("number", "desc").limit(1);
    const { number: followed, hash } = (await blocks.executeTakeFirst()) ?? { number: -1, hash: "" };
    if (this.chain.block(followed)?.hash !== hash) return false;
    const lanes = await this.store.db.selectFrom("lanes").select(["payer", "next_nonce"]).execute();
    const { nonces } = this.chain.head;
    if (lanes.some(({ payer, next_nonce: next }) => next !== (nonces.get(payer) ?? 0))) return false;
    return open === 0 && followed >= newest && followed >= this.chain.head.number - MOST_BEHIND;
  }

  async #until(holds: () => Promise<boolean>, ms: number): Promise<void> {
    const end = this.time.now + ms;
    for (;;) {
      let answer: boolean | undefined;
      void holds().then(
        (now) => (answer = now),
        () => (answer = false),
      );
      await this.time.pass(1_000);
      if (answer === true) return;
      if (this.time.now > end) throw new Error("the simulated relayers never become ready");
    }
  }
}

/** What the contract says to a write that it refuses: final, unlike everything else. */
const REFUSALS: ReadonlySet<string> = new Set(["unknown_account", "write_reverted"]);
const SAYS_IT_DID_NOT_HAPPEN = /was not executed|Nothing was charged|nothing was sent|Nothing was sent/;
