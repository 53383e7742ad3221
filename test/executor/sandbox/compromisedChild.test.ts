/** A compromised child sends arbitrary messages: the keyholder accepts none beyond its own run and its limits. */
import { expect } from "chai";
import { createHash, randomBytes } from "node:crypto";
import type { Fetcher } from "../../../executor/fetcher/types";
import { ModuleCache } from "../../../executor/sandbox/imports";
import type { FromChild, ToChild } from "../../../executor/sandbox/messages";
import { RunShares } from "../../../executor/sandbox/fetches";
import { RunSession } from "../../../executor/sandbox/session";
import type { Worker, WorkerEvents } from "../../../executor/sandbox/worker";
import { MIB, RUN_LIMITS, SHARED_LIMITS } from "../../../protocol/limits";
import { jobOf, noFetcher, silent, type RunOptions } from "../../support/sandbox";

class Puppet {
  events: WorkerEvents | undefined;
  readonly heard: ToChild[] = [];
  killedFor: string | undefined;
  resident = 0;
  strays = 0;
  /** Whether what it is sent leaves the keyholder's memory. */
  reads = false;
  #unread = 0;
  /** Of what it was sent, how many bytes the keyholder holds. */
  get unread(): number {
    return this.killedFor === undefined ? this.#unread : 0;
  }
  countStray(): void {
    this.strays += 1;
  }
  send(message: ToChild, payload?: Buffer, onSent?: () => void): void {
    this.heard.push(message);
    if (this.reads) onSent?.();
    else this.#unread += payload?.length ?? 0;
  }
  kill(reason: string): void {
    this.killedFor ??= reason;
  }
  scheduled(): { ranMs: number; waitedMs: number } {
    return { ranMs: 0, waitedMs: 0 };
  }
  residentBytes(): number {
    return this.resident;
  }
  says(message: FromChild, payload = Buffer.alloc(0)): void {
    this.events?.onMessage(message, payload);
  }
}

const RUN = 7;
const ORIGIN = "https://modules.test/npm/";

/** Large modules: with little memory, for they are parts of one buffer. */
class LargeModules {
  readonly #bytes = randomBytes(RUN_LIMITS.importBytes + 1_000);
  readonly #fetcher: Fetcher = {
    ...noFetcher,
    fetchModule: async (url) => this.#source(Number(/\d+$/.exec(url)?.[0])),
  };
  readonly cache = new ModuleCache(this.#fetcher, ORIGIN);

  specifier(index: number): string {
    return `m@1.0.0/${index}#sha384-${createHash("sha384").update(this.#source(index)).digest("base64")}`;
  }

  #source(index: number): Buffer {
    return this.#bytes.subarray(index, index + RUN_LIMITS.importBytes);
  }
}

function session(
  options: RunOptions = {},
  shares = new RunShares(RUN_LIMITS.fetchBytes),
  modules = new ModuleCache(noFetcher, ORIGIN),
): { puppet: Puppet; outcome: RunSession["outcome"] } {
  const puppet = new Puppet();
  const running = new RunSession(RUN, jobOf("", options), puppet as unknown as Worker, {
    fetcher: noFetcher,
    shares,
    modules,
    logger: silent,
    onWaits: () => undefined,
    onServed: () => undefined,
  });
  running.start();
  return { puppet, outcome: running.outcome };
}

const op = (name: string, args: unknown, call = 1): FromChild => ({
  type: "op",
  run: RUN,
  call,
  name,
  args: JSON.stringify(args),
});

describe("a compromised child", () => {
  it("cannot end or affect another run", async () => {
    const { puppet, outcome } = session();
    puppet.says({ type: "log", run: RUN + 1 }, Buffer.from("foreign"));
    puppet.says({ type: "end", run: RUN - 1 }, Buffer.from('"foreign"'));
    puppet.says({ type: "end", run: RUN }, Buffer.from('"own"'));
    expect(await outcome).to.include({ response: '"own"', logs: "" });
    expect(puppet.strays).to.equal(2);
  });

  it("is answered no more unknown ops than its run may have ops, and its empty logs count for nothing", async () => {
    const { puppet, outcome } = session({ limits: { keyOps: 3 } });
    puppet.says({ type: "log", run: RUN });
    for (let i = 1; i <= 10; i++) puppet.says(op("x", {}, i));
    expect((await outcome).error?.code).to.equal("limit_exceeded");
    expect(puppet.heard.filter((message) => message.type === "answer")).to.have.length.at.most(3);
    expect(puppet.strays).to.be.above(0);
  });

  it("says once that its code is parsed: what it says more counts as strays", async () => {
    const { puppet, outcome } = session();
    for (let i = 0; i < 10; i++) puppet.says({ type: "parsed", run: RUN, isCached: true });
    expect(puppet.strays).to.equal(9);
    puppet.says({ type: "end", run: RUN }, Buffer.from("1"));
    await outcome;
  });

  it("has its response written as whoever receives it writes it, so that a receipt fits", async () => {
    for (const [sent, written] of [
      ['{ "a" : 1.0, "b": -0 }', '{"a":1,"b":0}'],
      ["123456789012345678901234567890", "1.2345678901234568e+29"],
    ] as const) {
      const { puppet, outcome } = session();
      puppet.says({ type: "end", run: RUN }, Buffer.from(sent));
      expect((await outcome).response).to.equal(written);
    }
    const wide = session({ limits: { responseBytes: 12 } });
    const signatures = JSON.stringify({ üüüü: 1 });
    wide.puppet.says({ type: "end", run: RUN, signatures }, Buffer.from("1"));
    expect((await wide.outcome).error?.code).to.equal("response_too_large");
    const grown = session({ limits: { responseBytes: 12 } });
    grown.puppet.says({ type: "end", run: RUN }, Buffer.from("1e20"));
    expect((await grown.outcome).error?.code).to.equal("response_too_large");
  });

  it("cannot send a response that is not JSON, or too large", async () => {
    const broken = session();
    broken.puppet.says({ type: "end", run: RUN }, Buffer.from("{"));
    expect((await broken.outcome).error?.code).to.equal("sandbox_crashed");
    const large = session({ limits: { responseBytes: 4 } });
    large.puppet.says({ type: "end", run: RUN }, Buffer.from('"abc"'));
    expect((await large.outcome).error?.code).to.equal("response_too_large");
    expect(large.puppet.killedFor).to.equal("response_too_large");
  });

  it("cannot request more ops than the run's limit", async () => {
    let served = 0;
    const { puppet, outcome } = session({ limits: { keyOps: 3 }, ops: () => (served++, { ok: true, value: "1" }) });
    for (let i = 1; i <= 10; i++) puppet.says(op("signMessage", {}, i));
    expect((await outcome).error?.code).to.equal("limit_exceeded");
    expect(served).to.equal(3);
    expect(puppet.killedFor).to.equal("limit_exceeded");
  });

  it("gets no answer to an unknown op", async () => {
    let served = 0;
    const { puppet, outcome } = session({ ops: () => (served++, { ok: true, value: "1" }) });
    for (const name of ["rootKey", "__proto__", "constructor", "signAsPayer"]) puppet.says(op(name, {}));
    await new Promise((resolve) => setImmediate(resolve));
    puppet.says({ type: "end", run: RUN }, Buffer.from("1"));
    await outcome;
    expect(served).to.equal(0);
    expect(puppet.heard.filter((message) => message.type === "answer").every((message) => !message.ok)).to.equal(true);
  });

  it("gets no more answers once its run is over", async () => {
    let answer: (() => void) | undefined;
    const { puppet, outcome } = session({
      ops: () => new Promise((resolve) => (answer = () => resolve({ ok: true, value: '"secret"' }))),
    });
    puppet.says(op("getPrivateKey", {}));
    await new Promise((resolve) => setImmediate(resolve));
    puppet.says({ type: "end", run: RUN }, Buffer.from("1"));
    await outcome;
    answer?.();
    await new Promise((resolve) => setImmediate(resolve));
    expect(JSON.stringify(puppet.heard)).to.not.contain("secret");
  });

  it("that never finishes a large message gives way to others, and all fit the memory for these", async () => {
    const shares = new RunShares(RUN_LIMITS.fetchBytes);
    let most = 0;
    const sessions = Array.from({ length: 20 }, (_, i) => session({ account: `account ${i}` }, shares));
    const settled = sessions.map(async ({ puppet }) => {
      await puppet.events?.roomFor(20 * MIB).catch(() => undefined);
      most = Math.max(most, shares.frames.taken);
    });
    await new Promise(setImmediate);
    expect(shares.frames.taken).to.be.within(60 * MIB, SHARED_LIMITS.frameBytes);
    await Promise.all(settled);
    expect(most).to.be.at.most(SHARED_LIMITS.frameBytes);
    for (const { puppet } of sessions) puppet.says({ type: "end", run: RUN }, Buffer.from("1"));
    const ends = await Promise.all(sessions.map(async ({ outcome }) => (await outcome).error?.code));
    expect(ends.filter((code) => code === "preempted")).to.have.length.within(10, 19);
    expect(ends.filter((code) => code === undefined)).to.have.length.within(1, 10);
    expect(shares.frames.taken).to.equal(0);
  });

  it("that waits for the service after a large message does not give way, and holds nothing afterwards", async () => {
    const shares = new RunShares(RUN_LIMITS.fetchBytes);
    const [one, other] = [session({ account: "one" }, shares), session({ account: "other" }, shares)];
    const room = await one.puppet.events?.roomFor(100 * MIB);
    room?.arrived();
    const waiting = other.puppet.events?.roomFor(60 * MIB);
    await new Promise((resolve) => setTimeout(resolve, 2 * SHARED_LIMITS.patienceMs));
    expect([one.puppet.killedFor, shares.frames.taken]).to.deep.equal([undefined, 100 * MIB]);
    room?.leave();
    (await waiting)?.leave();
    await new Promise(setImmediate);
    expect(shares.frames.taken).to.equal(0);
    for (const { puppet } of [one, other]) puppet.says({ type: "end", run: RUN }, Buffer.from("1"));
    expect((await one.outcome).error).to.equal(undefined);
  });

  for (const [which, moduleOf] of [
    ["many large modules", (one: number, i: number) => RUN_LIMITS.imports * one + i],
    ["one large module many times", () => 0],
  ] as const) {
    it(`that imports ${which} and reads none gives way to others, and all fit the memory for these`, async () => {
      const shares = new RunShares(RUN_LIMITS.fetchBytes);
      const modules = new LargeModules();
      const greedy = [0, 1, 2, 3].map((one) => session({ account: `greedy ${one}` }, shares, modules.cache));
      const held = (): number => greedy.reduce((sum, { puppet }) => sum + puppet.unread, 0);
      let most = 0;
      let mostUncounted = 0;
      const watch = setInterval(() => {
        most = Math.max(most, held());
        mostUncounted = Math.max(mostUncounted, held() - shares.answers.taken);
      }, 1);
      for (const [one, { puppet }] of greedy.entries())
        for (let i = 0; i < RUN_LIMITS.imports; i++)
          puppet.says(op("import", { specifier: modules.specifier(moduleOf(one, i)) }, i));
      while (held() < SHARED_LIMITS.fetchAnswerBytes / 2) await new Promise((resolve) => setTimeout(resolve, 1));
      for (let i = 0; i < 3; i++) {
        const { puppet, outcome } = session({ account: `other ${i}` }, shares, modules.cache);
        puppet.reads = true;
        puppet.says(op("import", { specifier: modules.specifier(900 + i) }));
        while (!puppet.heard.some(({ type }) => type === "answer")) await new Promise(setImmediate);
        expect(puppet.heard.at(-1)).to.include({ type: "answer", ok: true });
        puppet.says({ type: "end", run: RUN }, Buffer.from("1"));
        expect((await outcome).error).to.equal(undefined);
      }
      await new Promise((resolve) => setTimeout(resolve, 2 * SHARED_LIMITS.patienceMs));
      clearInterval(watch);
      for (const { puppet } of greedy) puppet.says({ type: "end", run: RUN }, Buffer.from("1"));
      const ends = await Promise.all(greedy.map(async ({ outcome }) => (await outcome).error?.code));
      await new Promise(setImmediate);
      expect(most).to.be.within(SHARED_LIMITS.fetchAnswerBytes / 2, SHARED_LIMITS.fetchAnswerBytes);
      expect(mostUncounted).to.equal(0);
      expect(ends).to.include("preempted");
      expect([shares.answers.taken, shares.open.taken]).to.deep.equal([0, 0]);
    }).timeout(30_000);
  }

  it("does not outlive a run whose answers it did not read, which nothing would count any more", async () => {
    for (const reads of [false, true]) {
      const modules = new LargeModules();
      const { puppet, outcome } = session({}, undefined, modules.cache);
      puppet.reads = reads;
      puppet.says(op("import", { specifier: modules.specifier(0) }));
      while (!puppet.heard.some(({ type }) => type === "answer")) await new Promise(setImmediate);
      puppet.says({ type: "end", run: RUN }, Buffer.from("1"));
      expect(await outcome).to.deep.include({ response: "1" });
      expect([puppet.unread, puppet.killedFor === undefined]).to.deep.equal([0, reads]);
    }
  });

  it("is refused imports with longer arguments than a specifier makes, and they are counted", async () => {
    const { puppet, outcome } = session({ limits: { imports: 2 } });
    puppet.reads = true;
    const args = JSON.stringify({ specifier: "a" }).padEnd(100_000);
    for (let call = 1; call <= 3; call++)
      puppet.says({ type: "op", run: RUN, call, name: "import" }, Buffer.from(args));
    expect((await outcome).error?.code).to.equal("limit_exceeded");
    const answers = puppet.heard.filter((message) => message.type === "answer");
    expect(answers.every((answer) => !answer.ok && answer.code === "invalid_code")).to.equal(true);
  });

  it("is ended when it is silent beyond its time", async () => {
    const { puppet, outcome } = session({ limits: { wallMs: 50 } });
    const result = await outcome;
    expect(result.error?.code).to.equal("timed_out");
    expect(result.durationMs).to.be.within(290, 1_500);
    expect(puppet.killedFor).to.equal("timed_out");
  });

  it("is ended when it grows beyond its memory", async () => {
    const { puppet, outcome } = session();
    puppet.resident = 700 * 2 ** 20;
    expect((await outcome).error?.code).to.equal("out_of_memory");
    expect(puppet.killedFor).to.equal("out_of_memory");
  });

  it("is ended when it sends longer arguments than an op may have, in either place", async () => {
    const args = `"${"é".repeat(2 ** 20)}"`;
    for (const [message, payload] of [
      [{ args }, ""],
      [{}, args],
    ] as const) {
      const { puppet, outcome } = session();
      puppet.says({ type: "op", run: RUN, call: 1, name: "signMessage", ...message }, Buffer.from(payload));
      expect((await outcome).error?.code).to.equal("limit_exceeded");
    }
  });

  it("is refused when it sends malformed arguments", async () => {
    const { puppet, outcome } = session();
    puppet.says({ type: "op", run: RUN, call: 1, name: "fetch", args: "[1]" });
    puppet.says({
      type: "op",
      run: RUN,
      call: 2,
      name: "fetch",
      args: JSON.stringify({ url: "http://a", method: "GET\r\nX: y", redirect: "follow", headers: [] }),
    });
    await new Promise((resolve) => setImmediate(resolve));
    puppet.says({ type: "end", run: RUN }, Buffer.from("1"));
    await outcome;
    expect(puppet.heard.filter((message) => message.type === "answer").map((message) => message.ok)).to.deep.equal([
      false,
      false,
    ]);
  });
});
