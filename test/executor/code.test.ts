/**
 * Code by CID: all code is hashed again before it runs, whatever its source; the store keeps to its size and survives a
 * restart.
 */
import { expect } from "chai";
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CidComputer } from "../../protocol/cidComputer";
import { Code, type CodeSource } from "../../executor/code/code";
import { CodeMemory, RunCode } from "../../executor/code/memory";
import { CodeStore } from "../../executor/code/store";
import { FetchFailed } from "../../executor/fetcher/types";
import { cidOfCode } from "../../protocol/cid";
import { KeywrightError } from "../../protocol/errors";
import { eventually } from "../support/chainBed";
import type { Cid } from "../../protocol/ids";

const MAX_BYTES = 1_000;
const ACCOUNT = "an account";
const text = (name: string, bytes = 100): Buffer => Buffer.from(`// ${name} `.padEnd(bytes, "x"));

/** As a run does that ends at once. */
const load = (code: Code, source: CodeSource, account: string): Promise<string> =>
  code
    .use(source, { account }, (loaded) => Promise.resolve(loaded.bytes.toString()))
    .finally(() => source.code?.leave());

describe("code by CID", () => {
  let folder: string;
  const cids = new CidComputer();
  let gateway: (cid: string) => Promise<Buffer>;
  let fetches = 0;
  const fetcher = { fetchCode: (cid: string): Promise<Buffer> => (fetches++, gateway(cid)) };
  const open = async (storeBytes = 10_000): Promise<{ code: Code; store: CodeStore }> => {
    const store = await CodeStore.open(folder, storeBytes);
    return { store, code: new Code(cids, store, fetcher, MAX_BYTES, new CodeMemory()) };
  };
  /** What is given to a store is written one after the other. */
  const written = async (store: CodeStore): Promise<void> =>
    store.keep(await cidOfCode(text("written last")), text("written last"), ACCOUNT);
  const bytesOnDisk = (): number =>
    readdirSync(folder).reduce(
      (sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0),
      0,
    );
  const codeOf = (promise: Promise<unknown>): Promise<string> =>
    promise.then(
      () => "loaded",
      (error: unknown) => (error instanceof KeywrightError ? error.code : String(error)),
    );

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "keywright-code-"));
    fetches = 0;
    gateway = () => Promise.reject(new FetchFailed("not_found", "no"));
  });
  // Code that a test gave last may still be being written.
  afterEach(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  after(() => cids.close());

  it("is fetched from the gateway once and from the store afterwards, also after a restart", async () => {
    const bytes = text("published");
    const cid = await cidOfCode(bytes);
    gateway = () => Promise.resolve(bytes);
    const { code, store } = await open();
    expect(await load(code, { cid }, ACCOUNT)).to.equal(bytes.toString());
    await written(store);
    expect(await load(code, { cid }, ACCOUNT)).to.equal(bytes.toString());
    expect(await load((await open()).code, { cid }, ACCOUNT)).to.equal(bytes.toString());
    expect(fetches).to.equal(1);
  });

  it("leaves nothing on disk that cannot be read and would not be counted", async () => {
    const bytes = text("damaged");
    const cid = await cidOfCode(bytes);
    const { store } = await open();
    await store.keep(cid, bytes, ACCOUNT);
    rmSync(join(folder, cid));
    symlinkSync(cid, join(folder, cid));
    expect(await store.read(cid, ACCOUNT)).to.equal(undefined);
    expect(readdirSync(folder)).to.deep.equal([]);
  });

  it("is available at once after a run with its text, before it is on disk", async () => {
    const bytes = text("brought along");
    const cid = await cidOfCode(bytes);
    const { code } = await open();
    await load(code, { cid, code: new RunCode(bytes) }, ACCOUNT);
    expect(await load(code, { cid }, ACCOUNT)).to.equal(bytes.toString());
    expect(fetches).to.equal(0);
  });

  it("is freed once the child has it and it is on disk, not what another run by its CID got meanwhile", async () => {
    const bytes = Buffer.from(new Uint8Array(text("large", 900)).buffer);
    const cid = await cidOfCode(bytes);
    const { code, store } = await open();
    const sent = new RunCode(bytes);
    const another = await code.use({ cid, code: sent }, { account: ACCOUNT }, async (own) => {
      const read = await store.read(cid, ACCOUNT);
      expect(own.bytes.length).to.equal(900);
      own.drop();
      return read;
    });
    await eventually("it is freed", () => bytes.length === 0);
    expect(await cidOfCode(another ?? "")).to.equal(cid);
    expect(await cidOfCode(await load(code, { cid }, ACCOUNT))).to.equal(cid);
  });

  it("is held once for equal code that several requests brought, until the last of them drops it", async () => {
    const { code } = await open();
    const brought = (): Buffer => Buffer.from(new Uint8Array(text("equal", 900)).buffer);
    const [first, second] = [brought(), brought()];
    const cid = await cidOfCode(first);
    const [one, two] = [new RunCode(first), new RunCode(second)];
    await code.use({ cid, code: one }, { account: ACCOUNT }, async () => undefined);
    await code.use({ cid, code: two }, { account: "another" }, async () => undefined);
    expect(two.bytes).to.equal(one.bytes);
    expect([first.length, second.length]).to.deep.equal([900, 0]);
    one.leave();
    await sleep(50);
    expect(await cidOfCode(two.bytes)).to.equal(cid);
    two.leave();
    await eventually("it is freed", () => first.length === 0);
  });

  it("is not freed while a child is sent what a request brought, though that run by its CID is over", async () => {
    const { code } = await open();
    const bytes = Buffer.from(new Uint8Array(text("being sent", 900)).buffer);
    const cid = await cidOfCode(bytes);
    const brought = new RunCode(bytes);
    await code.use({ cid, code: brought }, { account: ACCOUNT }, async () => undefined);
    const sent = await code.use({ cid }, { account: ACCOUNT }, async (shared) => (shared.send(), shared));
    brought.leave();
    await sleep(50);
    expect(bytes.length).to.equal(900);
    sent.drop();
    await eventually("it is freed", () => bytes.length === 0);
  });

  it("is freed where its run was refused, and not while a child is sent it", async () => {
    const { code } = await open();
    const given = async (name: string): Promise<{ own: RunCode; bytes: Buffer; rested: () => number }> => {
      const bytes = Buffer.from(new Uint8Array(text(name, 900)).buffer);
      let rests = 0;
      const memory = { shrink: () => undefined, keep: () => undefined, rest: () => void rests++ };
      const { code: own } = await code.identify({}, { memory, over: new AbortController().signal, code: bytes });
      if (own === undefined) throw new Error("the request has code");
      return { own, bytes, rested: () => rests };
    };
    const refused = await given("refused");
    refused.own.leave();
    refused.own.leave();
    await eventually("it is freed", () => refused.bytes.length === 0);
    expect(refused.rested()).to.equal(1);

    const sent = await given("sent");
    expect(sent.own.send().length).to.equal(900);
    sent.own.leave();
    await sleep(20);
    expect(sent.bytes.length).to.equal(900);
    sent.own.drop();
    await eventually("it is freed", () => sent.bytes.length === 0);
    expect(sent.rested()).to.equal(1);
  });

  it("counts as memory with the params that are kept beside it", async () => {
    const { code } = await open();
    const counted: number[] = [];
    const memory = {
      shrink: (bytes: number) => void counted.push(bytes),
      keep: () => undefined,
      rest: () => undefined,
    };
    const large = { memory, over: new AbortController().signal };
    const bytes = Buffer.from(new Uint8Array(text("with params", 900)).buffer);
    await code.identify({}, { ...large, code: bytes }, 100_000);
    await code.identify({ cid: await cidOfCode(text("by CID")) }, large, 100_000);
    expect(counted).to.deep.equal([100_900, 100_000]);
  });

  it("is not fetched from outside when the relayers may have it", async () => {
    const bytes = text("elsewhere");
    gateway = () => Promise.resolve(bytes);
    const { code } = await open();
    const source = await code.identify({ cid: await cidOfCode(bytes), keptOnly: true });
    expect(await codeOf(load(code, source, ACCOUNT))).to.equal("code_not_found");
    expect(fetches).to.equal(0);
    await load(code, { cid: source.cid, code: new RunCode(bytes) }, ACCOUNT);
    expect(await load(code, source, ACCOUNT)).to.equal(bytes.toString());
  });

  it("is hashed again when it is sent with its CID", async () => {
    const { code } = await open();
    const cid = await cidOfCode("right");
    expect(await load(code, await code.identify({ cid, code: "right" }), ACCOUNT)).to.equal("right");
    expect(await codeOf(code.identify({ cid, code: "wrong" }))).to.equal("code_unavailable");
    expect(await codeOf(code.identify({}))).to.equal("invalid_value");
    expect(await codeOf(code.identify({ cid: "nonsense", code: "right" }))).to.equal("invalid_cid");
  });

  it("is fetched once for all runs that wait for it", async () => {
    const bytes = text("wanted by many");
    const cid = await cidOfCode(bytes);
    gateway = () => sleep(20).then(() => bytes);
    const { code } = await open();
    const loaded = await Promise.all(Array.from({ length: 5 }, () => load(code, { cid }, ACCOUNT)));
    expect(new Set(loaded)).to.deep.equal(new Set([bytes.toString()]));
    expect(fetches).to.equal(1);
  });

  it("limits the waiting runs of one account, whatever hangs, and not those of another account", async () => {
    const bytes = text("published");
    const published = await cidOfCode(bytes);
    const hanging = await Promise.all(Array.from({ length: 20 }, (_, index) => cidOfCode(text(`hangs ${index}`))));
    let give: (bytes: Buffer) => void = () => undefined;
    const never = new Promise<Buffer>((resolve) => (give = resolve));
    gateway = (cid) => (cid === published ? Promise.resolve(bytes) : never);
    const { code } = await open();
    const codes: string[] = [];
    const loads = hanging.map((cid) => codeOf(load(code, { cid }, ACCOUNT)).then((end) => codes.push(end)));
    await sleep(50);
    expect(codes).to.deep.equal(Array(4).fill("queue_full"));
    expect(await codeOf(load(code, { cid: published }, ACCOUNT))).to.equal("queue_full");
    expect(await load(code, { cid: published }, "another account")).to.equal(bytes.toString());
    give(text("too late and wrong"));
    await Promise.all(loads);
    expect(await load(code, { cid: published }, ACCOUNT)).to.equal(bytes.toString());
  });

  it("of an account is not evicted by one that sends ever more, also after a restart", async () => {
    const mine = text("mine", 900);
    const cid = await cidOfCode(mine);
    let mostOnDisk = 0;
    const flood = async (code: Code, name: string): Promise<void> => {
      const texts = Array.from({ length: 30 }, (_, index) => text(`${name} ${index}`, 900));
      for (const bytes of texts)
        await load(code, { cid: await cidOfCode(bytes), code: new RunCode(bytes) }, "another account");
      for (let looked = 0; looked < 50; looked++) {
        mostOnDisk = Math.max(mostOnDisk, bytesOnDisk());
        await sleep(2);
      }
    };
    const first = await open();
    await load(first.code, { cid, code: new RunCode(mine) }, ACCOUNT);
    await sleep(50);
    await flood(first.code, "one");
    expect(await codeOf(load(first.code, { cid }, ACCOUNT))).to.equal("loaded");
    const again = await open();
    expect(await codeOf(load(again.code, { cid }, ACCOUNT))).to.equal("loaded");
    await flood(again.code, "two");
    expect(await codeOf(load(again.code, { cid }, ACCOUNT))).to.equal("loaded");
    expect(mostOnDisk).to.be.at.most(10_000);
  });

  it("is refused when a gateway returns other bytes", async () => {
    gateway = () => Promise.resolve(text("other bytes"));
    const { code, store } = await open();
    const cid = await cidOfCode(text("wanted"));
    expect(await codeOf(load(code, { cid }, ACCOUNT))).to.equal("code_unavailable");
    expect(store.has(cid)).to.equal(false);
  });

  it("is fetched again when the file on disk does not match its name", async () => {
    const bytes = text("original");
    const cid = await cidOfCode(bytes);
    const { code, store } = await open();
    await load(code, { cid, code: new RunCode(bytes) }, ACCOUNT);
    await written(store);
    writeFileSync(join(folder, cid), text("tampered"));
    expect(await codeOf(load(code, { cid }, ACCOUNT))).to.equal("code_not_found");
    gateway = () => Promise.resolve(bytes);
    expect(await load(code, { cid }, ACCOUNT)).to.equal(bytes.toString());
  });

  it("reports whether it was not found, too large, not text, or unavailable", async () => {
    const { code } = await open();
    const cid = await cidOfCode(text("wanted"));
    expect(await codeOf(load(code, { cid }, ACCOUNT))).to.equal("code_not_found");
    gateway = () => Promise.reject(new FetchFailed("timed_out", "slow"));
    expect(await codeOf(load(code, { cid }, ACCOUNT))).to.equal("code_unavailable");
    gateway = () => Promise.reject(new FetchFailed("too_large", "large"));
    expect(await codeOf(load(code, { cid }, ACCOUNT))).to.equal("code_too_large");
    const noText = Buffer.from([0xff, 0xfe, 0x00]);
    gateway = () => Promise.resolve(noText);
    expect(await codeOf(load(code, { cid: await cidOfCode(noText) }, ACCOUNT))).to.equal("code_not_found");
  });

  it("is not fetched again where it is no text, nor for a while where it is too large, but may be sent", async () => {
    const { code } = await open();
    const noText = Buffer.from([0xff, 0xfe, 0x00]);
    const ofNoText = await cidOfCode(noText);
    gateway = () => Promise.resolve(noText);
    for (const account of ["one", "another", "a third"])
      expect(await codeOf(load(code, { cid: ofNoText }, account))).to.equal("code_not_found");
    expect(fetches).to.equal(1);
    const bytes = text("said to be large");
    const cid = await cidOfCode(bytes);
    gateway = () => Promise.reject(new FetchFailed("too_large", "large"));
    for (const account of ["one", "another", "a third"])
      expect(await codeOf(load(code, { cid }, account))).to.equal("code_too_large");
    expect(fetches).to.equal(2);
    expect(await codeOf(load(code, { cid, keptOnly: true }, "one")), "the relayers may have it").to.equal(
      "code_not_found",
    );
    await load(code, { cid, code: new RunCode(bytes) }, "one");
    expect(await load(code, { cid }, "another")).to.equal(bytes.toString());
  });

  it("may have exactly the maximum size and not one byte more", async () => {
    const { code } = await open();
    const identify = (bytes: number): Promise<string> => codeOf(code.identify({ code: "x".repeat(bytes) }));
    expect(await identify(MAX_BYTES)).to.equal("loaded");
    expect(await identify(MAX_BYTES + 1)).to.equal("code_too_large");
    expect(await codeOf(code.identify({ code: "é".repeat(MAX_BYTES / 2 + 1) }))).to.equal("code_too_large");
  });

  it("is evicted least recently used first when the store is full, also across restarts", async () => {
    const names = ["a", "b", "c"];
    const contents = new Map<Cid, Buffer>(
      await Promise.all(names.map(async (name) => [await cidOfCode(text(name)), text(name)] as const)),
    );
    const [a, b, c] = [...contents.keys()] as [Cid, Cid, Cid];
    const { store } = await open(250);
    for (const cid of [a, b]) {
      await store.keep(cid, contents.get(cid) as Buffer, ACCOUNT);
      await sleep(20);
    }
    await store.read(a, ACCOUNT);
    await sleep(20);
    await store.keep(c, contents.get(c) as Buffer, ACCOUNT);
    expect([store.has(a), store.has(b), store.has(c)]).to.deep.equal([true, false, true]);
    await sleep(20);
    await store.read(a, ACCOUNT);
    const usedAt = (cid: Cid): number => statSync(join(folder, cid)).mtimeMs;
    await eventually("it is known when it was read", () => usedAt(a) > usedAt(c));
    const smaller = (await open(150)).store;
    expect([smaller.has(a), smaller.has(c)]).to.deep.equal([true, false]);
    expect(readdirSync(folder)).to.deep.equal([a]);
  });

  it("leaves nothing of an interrupted write, and ignores files that are not code by CID", async () => {
    writeFileSync(join(folder, ".half-written"), "x");
    writeFileSync(join(folder, "a stranger's file"), "x");
    await open();
    expect(readdirSync(folder)).to.deep.equal([]);
  });

  it("gives each of many concurrent large texts its own CID", async () => {
    const texts = Array.from({ length: 4 }, (_, index) => text(`large ${index}`, 300_000 + index));
    const computed = await Promise.all(texts.map((each) => cids.of(each)));
    expect(computed).to.deep.equal(await Promise.all(texts.map((each) => cidOfCode(each))));
  });
});
