/** Large code that is run by CID: equal code is in memory once, and what there is of it counts for its accounts. */
import { expect } from "chai";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CidComputer } from "../../protocol/cidComputer";
import { cidOfCode } from "../../protocol/cid";
import { Crowded, inScope, Preempted } from "../../protocol/fairShare";
import type { Cid } from "../../protocol/ids";
import { MIB } from "../../protocol/limits";
import { Code, type CodeSource } from "../../executor/code/code";
import { CodeMemory, MEMORY_PER_REQUEST_BYTE } from "../../executor/code/memory";
import { CodeStore } from "../../executor/code/store";
import { FetchFailed } from "../../executor/fetcher/types";
import { expectInTime } from "../support/inTime";

const MAX_BYTES = 8 * MIB;
const TOTAL = 128 * MIB;
/** So many runs with code of 6 MiB have room: while one of them reads it, it takes twice as much. */
const FITTING = 20;
const ACCOUNT = "an account";
const ofMiB = (name: string, mib: number): Buffer => Buffer.from(`// ${name}`.padEnd(mib * MIB, "x"));
const large = (name: string): Buffer => ofMiB(name, 6);

/** A run that has its code and waits for a place, until it is told to end. */
interface Waiting {
  readonly outcome: Promise<string>;
  readonly leave: AbortController;
}

describe("the memory of code by CID", function () {
  this.timeout(30_000);
  let folder: string;
  let store: CodeStore;
  let memory: CodeMemory;
  let code: Code;
  let end: PromiseWithResolvers<undefined>;
  let gateway: (signal?: AbortSignal) => Promise<Buffer>;
  let hashed = 0;
  let under = 0;
  const cids = new CidComputer();
  const counted = { of: (bytes: string | Buffer): Promise<Cid> => (hashed++, cids.of(bytes)) };

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "keywright-memory-"));
    store = await CodeStore.open(folder, 1_024 * MIB);
    memory = new CodeMemory({ totalBytes: TOTAL, unitBytes: 0 });
    gateway = () => Promise.reject(new FetchFailed("not_found", "no"));
    code = new Code(
      counted,
      store,
      { fetchCode: (_cid, _most, options) => gateway(options?.signal) },
      MAX_BYTES,
      memory,
    );
    end = Promise.withResolvers();
    [hashed, under] = [0, 0];
  });
  afterEach(() => {
    end.resolve(undefined);
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  });
  after(() => cids.close());

  const kept = async (bytes: Buffer): Promise<Cid> => {
    const cid = await cidOfCode(bytes);
    await store.keep(cid, bytes, ACCOUNT);
    return cid;
  };
  const start = (source: CodeSource, account = ACCOUNT): Waiting => {
    const leave = new AbortController();
    const ended = end.promise;
    const outcome = code
      .use(source, { account, signals: [leave.signal] }, async ({ over }) => {
        under++;
        const revoked = new Promise((_, reject) => over?.addEventListener("abort", () => reject(over.reason as Error)));
        await Promise.race([ended, revoked]).finally(() => under--);
      })
      .then(
        () => "ran",
        (error: Error) => (error instanceof Crowded ? "crowded" : error.message),
      );
    return { outcome, leave };
  };
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await sleep(10);
  };
  const nothingIsLeft = (): void => {
    expect([memory.taken, memory.waiting, under]).to.deep.equal([0, 0, 0]);
  };

  it("is bounded in sum, however many runs of one account wait with it", async () => {
    const cid = await kept(large("asked for often"));
    const before = process.memoryUsage().rss;
    const runs = Array.from({ length: 140 }, () => start({ cid }));
    await until(() => under >= FITTING);
    await sleep(200);
    expect(under).to.equal(FITTING);
    expect(memory.taken).to.be.at.most(TOTAL);
    expect(process.memoryUsage().rss - before).to.be.below(150 * MIB);
    end.resolve(undefined);
    expect(new Set(await Promise.all(runs.map(({ outcome }) => outcome)))).to.deep.equal(new Set(["ran"]));
    nothingIsLeft();
  });

  it("holds equal code once: it is read and hashed once for all its runs that have not ended", async () => {
    const cid = await kept(large("wanted by many"));
    const runs = Array.from({ length: 5 }, () => start({ cid }));
    await until(() => under === 5);
    const late = start({ cid, keptOnly: true }, "another account");
    await until(() => under === 6);
    expect(hashed).to.equal(1);
    end.resolve(undefined);
    await Promise.all([...runs, late].map(({ outcome }) => outcome));
    await start({ cid }).outcome;
    expect(hashed).to.equal(2);
    nothingIsLeft();
  });

  it("is shared also by runs whose code left the store meanwhile", async () => {
    const cid = await kept(large("evicted"));
    const first = start({ cid });
    await until(() => under === 1);
    await store.drop(cid);
    const second = start({ cid, keptOnly: true });
    await until(() => under === 2);
    end.resolve(undefined);
    expect(await Promise.all([first.outcome, second.outcome])).to.deep.equal(["ran", "ran"]);
  });

  it("is given back as soon as a child has the code, however long the run goes on", async () => {
    const cid = await kept(large("sleeps"));
    let ran = 0;
    const runs = Array.from({ length: 3 * FITTING }, () =>
      code.use({ cid }, { account: ACCOUNT }, async (given) => {
        expect(given.bytes.length).to.equal(6 * MIB);
        given.drop();
        ran++;
        await end.promise;
      }),
    );
    await until(() => ran === runs.length);
    expect([memory.taken, memory.waiting]).to.deep.equal([0, 0]);
    const late = start({ cid });
    await until(() => under === 1);
    expect(hashed, "nobody held it any more").to.be.greaterThan(1);
    end.resolve(undefined);
    await Promise.all([...runs, late.outcome]);
    nothingIsLeft();
  });

  it("is taken from the runs in the queue of whoever holds most, when others have waited a second for it", async () => {
    const cid = await kept(large("fills the queue"));
    const runs = Array.from({ length: FITTING + 10 }, () => start({ cid }));
    await until(() => under === FITTING);
    const startedAt = performance.now();
    const others = ["one", "another"].map((account) => start({ cid }, account));
    const first = await Promise.race(runs.map(({ outcome }) => outcome));
    expect(first).to.equal(new Preempted().message);
    await until(() => memory.waiting === 10);
    expectInTime(performance.now() - startedAt, 3_000, "others' memory");
    expect(under).to.be.within(FITTING - 2, FITTING);
    end.resolve(undefined);
    expect(await Promise.all(others.map(({ outcome }) => outcome))).to.deep.equal(["ran", "ran"]);
    await Promise.all(runs.map(({ outcome }) => outcome));
    nothingIsLeft();
  });

  it("is taken for the largest code before a gateway is asked, and is corrected afterwards", async () => {
    const bytes = Buffer.from("// small");
    const cid = await cidOfCode(bytes);
    const arrived = Promise.withResolvers<Buffer>();
    gateway = () => arrived.promise;
    const run = start({ cid });
    await until(() => memory.taken > 0);
    expect(memory.taken).to.equal(2 * MAX_BYTES);
    arrived.resolve(bytes);
    await until(() => under === 1);
    expect(memory.taken).to.equal(bytes.length);
    end.resolve(undefined);
    await run.outcome;
    nothingIsLeft();
  });

  it("is given back at once by runs whose gateway is slow, revoked or left, and their fetch ends", async () => {
    const signals: AbortSignal[] = [];
    gateway = (signal) =>
      new Promise((_, reject) => {
        signals.push(signal as AbortSignal);
        signal?.addEventListener("abort", () => reject(new FetchFailed("failed", "it was given up")));
      });
    const cids = await Promise.all(Array.from({ length: 12 }, (_, n) => cidOfCode(`// unknown ${n}`)));
    const runs = cids.map((cid) => start({ cid }, "whoever holds most"));
    await until(() => memory.taken > 0 && memory.waiting > 0);
    const honest = start({ cid: await kept(large("honest")) }, "honest");
    await until(() => under === 1);
    end.resolve(undefined);
    expect(await honest.outcome).to.equal("ran");
    for (const { leave } of runs) leave.abort(new Error("left"));
    await Promise.all(runs.map(({ outcome }) => outcome));
    expect(signals.every(({ aborted }) => aborted)).to.equal(true);
    nothingIsLeft();
  });

  it("is not waited for by code of up to a megabyte in a request, or some in the store", async () => {
    const cid = await kept(large("large"));
    const runs = Array.from({ length: FITTING + 5 }, () => start({ cid }));
    await until(() => memory.waiting === 5);
    const medium = start({ cid: await kept(ofMiB("medium", 4)) });
    await until(() => under === FITTING + 1);
    await inScope("another account", undefined, async (scope) => memory.take(scope, MEMORY_PER_REQUEST_BYTE * MIB));
    end.resolve(undefined);
    await Promise.all([...runs, medium].map(({ outcome }) => outcome));
    nothingIsLeft();
  });

  it("is not waited for by small code that is stored here", async () => {
    const cid = await kept(large("large"));
    const runs = Array.from({ length: FITTING + 5 }, () => start({ cid }));
    await until(() => under === FITTING);
    expect(memory.waiting).to.equal(5);
    const small = start({ cid: await kept(Buffer.from("// small")) });
    await until(() => under === FITTING + 1);
    end.resolve(undefined);
    await Promise.all([...runs, small].map(({ outcome }) => outcome));
    nothingIsLeft();
  });

  it("waits for the disk within a bound, beyond which it is not kept", async () => {
    const codes = await Promise.all(Array.from({ length: 40 }, async (_, i) => ofMiB(`written ${i}`, 3)));
    const cids = await Promise.all(codes.map((bytes) => cidOfCode(bytes)));
    await Promise.all(codes.map((bytes, i) => store.keep(cids[i] as Cid, bytes, ACCOUNT)));
    const isKept = cids.map((cid) => store.has(cid));
    expect(isKept.slice(0, 21)).to.not.include(false);
    expect(isKept.slice(22)).to.not.include(true);
    await store.keep(cids[39] as Cid, codes[39] as Buffer, ACCOUNT);
    expect(store.has(cids[39] as Cid)).to.equal(true);
  });

  it("is given back by runs that fail, that leave the queue, and whose code is not there", async () => {
    const cid = await kept(large("left"));
    const runs = Array.from({ length: FITTING + 10 }, () => start({ cid }));
    await until(() => under === FITTING);
    for (const { leave } of runs.slice(FITTING)) leave.abort(new Error("gone"));
    const left = await Promise.all(runs.slice(FITTING).map(({ outcome }) => outcome));
    expect(left).to.deep.equal(Array(10).fill("gone"));
    end.resolve(undefined);
    await Promise.all(runs.map(({ outcome }) => outcome));
    const failed = code.use({ cid }, { account: ACCOUNT }, () => Promise.reject(new Error("the pool refused")));
    expect(await failed.catch((error: Error) => error.message)).to.equal("the pool refused");
    expect(await start({ cid: await cidOfCode("nowhere") }).outcome).to.contain("No code was found");
    nothingIsLeft();
  });

  it("refuses a run that has waited for it too long, as it does for code in a request", async () => {
    const cid = await kept(large("too much"));
    memory = new CodeMemory({ totalBytes: TOTAL, unitBytes: 0, waitMs: 100 });
    code = new Code(
      counted,
      store,
      { fetchCode: (_cid, _most, options) => gateway(options?.signal) },
      MAX_BYTES,
      memory,
    );
    const runs = Array.from({ length: FITTING + 3 }, () => start({ cid }));
    const refused = await Promise.all(runs.slice(FITTING).map(({ outcome }) => outcome));
    expect(refused).to.deep.equal(["crowded", "crowded", "crowded"]);
    end.resolve(undefined);
    await Promise.all(runs.map(({ outcome }) => outcome));
    nothingIsLeft();
  });
});
