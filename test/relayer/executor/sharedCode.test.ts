/**
 * Runs by CID on a machine whose executor does not have the code: from the shared store, from outside, and not from a
 * store that returns wrong bytes.
 */
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { cidOfCode } from "../../../protocol/cid";
import { KeywrightError } from "../../../protocol/errors";
import type { ExecutorAnswer } from "../../../protocol/executor";
import { FairShare, inScope, type Grant } from "../../../protocol/fairShare";
import { MIB } from "../../../protocol/limits";
import type { AccountId, Cid } from "../../../protocol/ids";
import type { KeyState } from "../../../protocol/keyState";
import type { RequestedRun } from "../../../relayer/executor/runExchange";
import type { RunQuestion } from "../../../relayer/executor/runBody";
import type { Executor } from "../../../relayer/executor/client";
import type { BodyMemory } from "../../../relayer/bodyMemory";
import { CodeSharingExecutor } from "../../../relayer/executor/sharedCode";

const ACCOUNT = `0x${"ac".repeat(32)}` as AccountId;
const PERMISSION = Promise.resolve({ accountId: ACCOUNT } as KeyState);
const CODE = "async function main() { return 1; }";
const BROKEN = "not JavaScript";
const input = (code: Pick<RunQuestion, "code" | "cid">): RunQuestion => ({
  credential: { type: "key", key: "k" },
  params: "{}",
  notBefore: Promise.resolve(0),
  ...code,
});

/** Stores what it ran, as the real one does, and hashes received code. */
class ExecutorDouble implements Executor {
  readonly kept = new Map<string, string>();
  readonly outside = new Map<string, string>();
  readonly asked: RunQuestion[] = [];
  abandoned = 0;

  call(): Promise<never> {
    return Promise.reject(new Error("not asked"));
  }

  askRun(asked: RunQuestion): RequestedRun {
    this.asked.push(asked);
    return {
      permission: PERMISSION,
      start: (limitMs) => this.#run(asked, limitMs),
      abandon: () => void this.abandoned++,
      leave: () => undefined,
      mayHaveRun: false,
    };
  }

  async #run({ code, cid, keptOnly }: RunQuestion, limitMs: number): Promise<ExecutorAnswer<"run">> {
    const own = code === undefined ? undefined : await cidOfCode(code);
    if (own !== undefined && cid !== undefined && own !== cid)
      throw new KeywrightError("code_unavailable", "other bytes");
    const name = own ?? cid ?? "";
    const found = code ?? this.kept.get(name) ?? (keptOnly === true ? undefined : this.outside.get(name));
    if (found === undefined) throw new KeywrightError("code_not_found", "no");
    this.kept.set(name, found);
    const usage = { durationMs: 1, limitMs };
    const error = found === BROKEN ? { error: { code: "invalid_code" as const, message: "no" } } : {};
    const receipt = `e30.e30.${"A".repeat(86)}`;
    const rest = { serviceFault: false, isFree: false, cid: name, pkpsUsed: [], receipt };
    return { response: "1", logs: "", ...error, usage, ...rest };
  }
}

class StoreDouble {
  readonly codes = new Map<string, Buffer>();
  readonly uses: string[] = [];
  isAway = false;
  /** How many were read at once. */
  readings = { now: 0, most: 0 };
  async sizeOf(cid: Cid): Promise<number | undefined> {
    if (this.isAway) throw new Error("away");
    return this.codes.get(cid)?.length;
  }
  async read(cid: Cid): Promise<Buffer | undefined> {
    if (this.isAway) throw new Error("away");
    this.readings.most = Math.max(this.readings.most, ++this.readings.now);
    await setImmediate();
    this.readings.now--;
    const code = this.codes.get(cid);
    return code && Buffer.from(code);
  }
  async keep(_account: AccountId, cid: Cid, code: Buffer): Promise<void> {
    if (this.isAway) throw new Error("away");
    this.uses.push(`keep ${cid}`);
    this.codes.set(cid, code);
  }
  async use(_account: AccountId, cid: Cid): Promise<void> {
    this.uses.push(`use ${cid}`);
  }
  async drop(cid: Cid): Promise<void> {
    this.codes.delete(cid);
  }
}

describe("code shared by machines", () => {
  let store: StoreDouble;
  let errors: unknown[];
  let cid: Cid;
  /** For two codes of a megabyte while they are read. */
  let memory: FairShare;
  const take = (bytes: number, perByte: number, { scope, account }: BodyMemory): Promise<Grant> =>
    scope.take(memory, bytes * perByte, { account });
  const machine = (): { executor: ExecutorDouble; sharing: CodeSharingExecutor } => {
    const executor = new ExecutorDouble();
    return { executor, sharing: new CodeSharingExecutor(executor, store, take, (error) => errors.push(error)) };
  };
  const refusalOf = (run: Promise<unknown>): Promise<unknown> =>
    run.then(
      () => "ran",
      (error: unknown) => (error instanceof KeywrightError ? error.code : error),
    );

  before(async () => (cid = await cidOfCode(CODE)));
  beforeEach(() => {
    store = new StoreDouble();
    errors = [];
    memory = new FairShare({ total: 16 * MIB, unit: 8 * MIB });
  });

  it("runs by CID on a machine that never received it, once another ran it", async () => {
    await machine()
      .sharing.askRun(input({ code: CODE }))
      .start(1_000);
    const other = machine();
    const run = other.sharing.askRun(input({ cid }));
    expect((await run.start(1_000)).response).to.equal("1");
    expect(other.executor.asked.map(({ keptOnly, code }) => [keptOnly, code])).to.deep.equal([
      [true, undefined],
      [undefined, CODE],
    ]);
    await other.sharing.askRun(input({ cid })).start(1_000);
    expect(other.executor.asked, "from then on its executor keeps it").to.have.length(3);
  });

  it("is fetched from outside only where the store does not have it", async () => {
    const { executor, sharing } = machine();
    executor.outside.set(cid, CODE);
    await sharing.askRun(input({ cid })).start(1_000);
    expect(executor.asked).to.have.length(2);
    expect(await refusalOf(sharing.askRun(input({ cid: await cidOfCode("none") })).start(1_000))).to.equal(
      "code_not_found",
    );
  });

  it("is deleted, not run, when its bytes are wrong; the code is then fetched from outside", async () => {
    const { executor, sharing } = machine();
    store.codes.set(cid, Buffer.from("evil"));
    executor.outside.set(cid, CODE);
    await sharing.askRun(input({ cid })).start(1_000);
    expect(executor.kept.get(cid)).to.equal(CODE);
    expect(store.codes.size).to.equal(0);
  });

  it("costs one statement for each account and code within an hour", async () => {
    const { sharing } = machine();
    for (let i = 0; i < 3; i++) await sharing.askRun(input({ code: CODE })).start(1_000);
    for (let i = 0; i < 3; i++) await sharing.askRun(input({ cid })).start(1_000);
    expect(store.uses).to.deep.equal([`keep ${cid}`]);
  });

  it("is stored also where its account ran it by its CID before, when the store did not have it", async () => {
    const { executor, sharing } = machine();
    executor.outside.set(cid, CODE);
    await sharing.askRun(input({ cid })).start(1_000);
    await sharing.askRun(input({ code: CODE })).start(1_000);
    expect(store.uses).to.deep.equal([`use ${cid}`, `keep ${cid}`]);
    expect(store.codes.size).to.equal(1);
  });

  it("does not delay an answer when the store is slow, and does not accumulate", async () => {
    const { sharing } = machine();
    let stored = 0;
    let give: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => (give = resolve));
    store.keep = async () => {
      stored += 1;
      await slow;
    };
    const startedAt = performance.now();
    const runs = Array.from({ length: 100 }, (_, index) => sharing.askRun(input({ code: `// ${index}` })).start(1_000));
    expect((await Promise.all(runs)).map(({ response }) => response)).to.deep.equal(Array(100).fill("1"));
    expect(performance.now() - startedAt).to.be.lessThan(2_000);
    expect(stored).to.equal(64);
    give();
  });

  it("waits for a slow store within a bound of bytes", async () => {
    const { sharing } = machine();
    const stored: number[] = [];
    const given = Promise.withResolvers<undefined>();
    store.keep = async (_account, _cid, code) => {
      stored.push(code.length);
      await given.promise;
    };
    const large = (i: number): string => `// ${i}`.padEnd(16 * MIB, "x");
    for (let i = 0; i < 6; i++) await sharing.askRun(input({ code: large(i) })).start(1_000);
    expect(stored).to.deep.equal(Array(4).fill(16 * MIB));
    given.resolve(undefined);
    await new Promise((resolve) => setTimeout(resolve, 10));
    await sharing.askRun(input({ code: large(5) })).start(1_000);
    expect(stored.length, "with a later run").to.equal(5);
  });

  it("is not stored when it was deleted meanwhile, and nothing is asked for in its place", async () => {
    const { sharing, executor } = machine();
    const question = input({ code: CODE });
    const asked = sharing.askRun(question);
    delete question.code;
    expect((await asked.start(1_000)).response).to.equal("1");
    expect(executor.asked).to.have.length(1);
    expect(store.codes.size).to.equal(0);
  });

  it("is not run for another account than the paying one, when the executor is asked again", async () => {
    const { executor, sharing } = machine();
    executor.outside.set(cid, CODE);
    const ask = executor.askRun.bind(executor);
    executor.askRun = (asked) =>
      asked.keptOnly === true
        ? ask(asked)
        : { ...ask(asked), permission: Promise.resolve({ accountId: `0x${"ff".repeat(32)}` } as KeyState) };
    expect(await refusalOf(sharing.askRun(input({ cid })).start(1_000))).to.equal("unknown_key");
    expect(executor.kept.size, "nothing ran").to.equal(0);
    expect(executor.abandoned).to.equal(1);
  });

  it("loses no run during an outage of the store, and stores nothing of a refused run", async () => {
    const { executor, sharing } = machine();
    store.isAway = true;
    expect((await sharing.askRun(input({ code: CODE })).start(1_000)).response).to.equal("1");
    executor.outside.set(await cidOfCode("2"), "2");
    await sharing.askRun(input({ cid: await cidOfCode("2") })).start(1_000);
    expect(errors).to.have.length(2);
    store.isAway = false;
    executor.askRun = () => ({
      permission: PERMISSION,
      start: () => Promise.reject(new KeywrightError("action_not_permitted", "no")),
      abandon: () => undefined,
      leave: () => undefined,
      mayHaveRun: false,
    });
    expect(await refusalOf(sharing.askRun(input({ code: "other" })).start(1_000))).to.equal("action_not_permitted");
    expect(store.codes.size).to.equal(0);
  });

  it("is not stored when it never began: it was not paid for", async () => {
    await machine()
      .sharing.askRun(input({ code: BROKEN }))
      .start(1_000);
    expect(store.uses).to.deep.equal([]);
  });

  it("is abandoned with its run", () => {
    const { executor, sharing } = machine();
    sharing.askRun(input({ cid })).abandon();
    expect(executor.abandoned).to.equal(1);
  });

  /** The executor's side of a run with stored code, given by the test. */
  interface Given {
    readonly permission: PromiseWithResolvers<KeyState>;
    readonly outcome: PromiseWithResolvers<ExecutorAnswer<"run">>;
  }

  /** Has an executor without any code keep nothing of what it is asked, and decide on stored code when told to. */
  function givenByHand(executor: ExecutorDouble): Given[] {
    const given: Given[] = [];
    const ask = executor.askRun.bind(executor);
    executor.askRun = (asked) => {
      if (asked.keptOnly === true) return ask(asked);
      const one: Given = { permission: Promise.withResolvers(), outcome: Promise.withResolvers() };
      given.push(one);
      const rest = { abandon: () => undefined, leave: () => undefined, mayHaveRun: false };
      return { permission: one.permission.promise, start: () => one.outcome.promise, ...rest };
    };
    return given;
  }

  async function storedOf(bytes: number): Promise<Cid> {
    const code = Buffer.alloc(bytes, "x");
    const stored = await cidOfCode(code);
    store.codes.set(stored, code);
    return stored;
  }

  const turns = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await setImmediate();
  };

  it("takes its account's memory until the executor has it, and then none while it runs", async () => {
    const { executor, sharing } = machine();
    const given = givenByHand(executor);
    const stored = await storedOf(MIB);
    const runs = Array.from({ length: 8 }, () => sharing.askRun(input({ cid: stored })).start(1_000));
    for (let asked = 0; asked < 8; asked++) {
      await turns();
      expect(memory.taken, "while they are read and sent").to.be.within(MIB, 16 * MIB);
      given[asked]?.permission.resolve(await PERMISSION);
    }
    await turns();
    expect(given).to.have.length(8);
    expect(store.readings.most, "at once").to.be.lessThan(3);
    expect(memory.taken, "while they run").to.equal(0);
    for (const { outcome } of given) outcome.reject(new KeywrightError("queue_full", "no"));
    for (const run of runs) expect(await refusalOf(run)).to.equal("queue_full");
  });

  it("is held by nothing while it runs", async () => {
    const inUse = (): number => {
      setFlagsFromString("--expose-gc");
      (runInNewContext("gc") as () => void)();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    memory = new FairShare({ total: 1_024 * MIB });
    const { executor, sharing } = machine();
    const given = givenByHand(executor);
    const stored = await storedOf(8 * MIB);
    const before = inUse();
    const runs = Array.from({ length: 4 }, () => sharing.askRun(input({ cid: stored })).start(1_000));
    await turns();
    expect(inUse() - before, "while it is sent").to.be.greaterThan(4 * 8 * MIB - MIB);
    for (const { permission } of given) permission.resolve(await PERMISSION);
    await turns();
    expect(inUse() - before, "while it runs").to.be.lessThan(4 * MIB);
    for (const { outcome } of given) outcome.reject(new KeywrightError("queue_full", "no"));
    await Promise.allSettled(runs);
  });

  it("waits for memory no longer than its client, and takes none after a failure", async () => {
    const { executor, sharing } = machine();
    const given = givenByHand(executor);
    const stored = await storedOf(MIB);
    await inScope("another", undefined, async (scope) => {
      await scope.take(memory, 16 * MIB);
      const run = sharing.askRun(input({ cid: stored }));
      const started = run.start(1_000);
      await turns();
      run.leave();
      expect(await refusalOf(started)).to.equal("queue_full");
      expect(run.mayHaveRun).to.equal(false);
    });
    expect(given, "nothing was asked").to.have.length(0);
    store.read = () => Promise.reject(new Error("away"));
    const failed = sharing.askRun(input({ cid: stored })).start(1_000);
    await turns();
    given[0]?.permission.reject(new KeywrightError("code_not_found", "no"));
    expect(await refusalOf(failed)).to.equal("code_not_found");
    expect(memory.taken).to.equal(0);
  });

  it("is not run for a client that left while the executor was asked again", async () => {
    const { executor, sharing } = machine();
    const given = givenByHand(executor);
    for (const cidOfRun of [await storedOf(MIB), await cidOfCode("not stored")]) {
      const run = sharing.askRun(input({ cid: cidOfRun }));
      const started = run.start(1_000);
      await turns();
      run.leave();
      given.at(-1)?.permission.resolve(await PERMISSION);
      expect(await refusalOf(started)).to.equal("queue_full");
    }
    expect(given).to.have.length(2);
  });

  it("is not run where there is no memory for it in time", async () => {
    const { executor } = machine();
    const crowded = new KeywrightError("queue_full", "Too many bodies are under way at the moment.");
    const sharing = new CodeSharingExecutor(
      executor,
      store,
      () => Promise.reject(crowded),
      () => expect.fail(),
    );
    const run = sharing.askRun(input({ cid: await storedOf(MIB) }));
    expect(await refusalOf(run.start(1_000))).to.equal("queue_full");
    expect(run.mayHaveRun).to.equal(false);
    expect(executor.kept.size).to.equal(0);
  });
});
