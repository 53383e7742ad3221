/** Bodies that arrive slowly, from few addresses: their memory is bounded in sum, and others are served. */
import { randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import { request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import Koa from "koa";
import { KeywrightError } from "../../../protocol/errors";
import { inScope } from "../../../protocol/fairShare";
import { MIB, SHARED_LIMITS, WIRE_LIMITS } from "../../../protocol/limits";
import { readBody } from "../../../relayer/middleware/body";
import type { Presented } from "../../../relayer/middleware/call";
import type { RelayerContext, RelayerState } from "../../../relayer/middleware/context";
import { problems } from "../../../relayer/middleware/problems";
import { serve, type ServeDeps } from "../../../relayer/middleware/serve";
import { expectInTime } from "../../support/inTime";
import { silent } from "../../support/sandbox";

/** A request whose body is written by the test; `read` counts what was taken of it. */
function request(length: number, encoding = ""): { ctx: RelayerContext; body: PassThrough } {
  const body = new PassThrough({ highWaterMark: 64 * 1_024 });
  const [name, value] = encoding === "" ? ["Content-Length", String(length)] : ["Transfer-Encoding", encoding];
  const headers: Record<string, string> = { "Content-Type": "application/json", [name]: value };
  const ctx = {
    req: body,
    res: new EventEmitter(),
    get: (name: string) => headers[name] ?? "",
    request: { length },
  } as unknown as RelayerContext;
  return { ctx, body };
}

function read(ctx: RelayerContext, account: string): Promise<{ bytes: number } | { code: unknown }> {
  return inScope(account, undefined, async (scope) => ({
    bytes: (await readBody(ctx, "code", { scope, account })).bytes.length,
  })).catch((error: { code?: unknown }) => ({ code: error.code }));
}

/** Another's body, of so many bytes, is read within a time. */
async function expectReadIn(ms: number, bytes: number, { ctx, body } = request(bytes)): Promise<void> {
  body.end(Buffer.alloc(bytes));
  const startedAt = performance.now();
  expect(await read(ctx, "203.0.113.3")).to.deep.equal({ bytes });
  expectInTime(performance.now() - startedAt, ms, "another's body");
}

describe("large bodies under way", function () {
  this.timeout(20_000);

  it("are read within the memory for all of them, and slow ones give way to another address", async () => {
    const large = 17 * MIB;
    const slow = Array.from({ length: 80 }, () => request(large));
    const over = new Set<number>();
    const ends = slow.map(({ ctx }, i) => read(ctx, `198.51.100.${i % 16}`).finally(() => over.add(i)));
    for (const { body } of slow) body.write(Buffer.alloc(8 * MIB));
    await new Promise((resolve) => setTimeout(resolve, 200));
    const underWay = slow.filter(({ body }, i) => body.readableLength === 0 && !over.has(i));
    expect(underWay.length).to.be.within(1, SHARED_LIMITS.bodyMemoryBytes / (4 * large));

    for (const address of ["203.0.113.2", "203.0.113.3", "203.0.113.4", "203.0.113.5"]) {
      const quick = request(WIRE_LIMITS.bodyBytes);
      quick.body.end(Buffer.alloc(WIRE_LIMITS.bodyBytes));
      const startedAt = performance.now();
      expect(await read(quick.ctx, address)).to.deep.equal({ bytes: WIRE_LIMITS.bodyBytes });
      expect(performance.now() - startedAt).to.be.below(3_000);
    }
    const others = ["203.0.113.6", "203.0.113.7", "203.0.113.8", "203.0.113.9"].map((address) => {
      const quick = request(large);
      quick.body.end(Buffer.alloc(large));
      return read(quick.ctx, address);
    });
    for (const other of await Promise.all(others)) expect(other).to.deep.equal({ bytes: large });
    // What else comes of a refused one is discarded: its connection serves further requests.
    const [refused] = [...over].map((i) => slow[i]?.body);
    refused?.write(Buffer.alloc(MIB));
    await sleep(50);
    expect(refused?.readableLength).to.equal(0);
    for (const { body } of slow) body.destroy();
    const codes = (await Promise.all(ends)).map((end) => ("code" in end ? end.code : "read"));
    expect(codes).to.include("queue_full");
    expect(new Set(codes)).to.deep.equal(new Set(["queue_full", "malformed_json"]));
  });

  it("leave their connections to further requests where they are too large and do not say so", async () => {
    const { ctx, body } = request(0, "chunked");
    const ended = read(ctx, "203.0.113.10");
    const pieces = 18;
    for (let piece = 0; piece < pieces; piece++) body.write(Buffer.alloc(MIB));
    expect(await ended).to.deep.equal({ code: "payload_too_large" });
    body.write(Buffer.alloc(MIB));
    await sleep(50);
    expect(body.readableLength).to.equal(0);
    body.destroy();
  });

  it("are worked on one after the other, and give way at once when they are only of use", async () => {
    const large = 17 * MIB;
    const stop = Promise.withResolvers<undefined>();
    const dropped: number[] = [];
    let underWay = 0;
    const bodies: PassThrough[] = [];
    const haveArrived = (): boolean => bodies.filter(({ readableEnded }) => readableEnded).length > 1;
    const turns: { readonly from: number; readonly to: number }[] = [];
    const sleeping = Array.from({ length: 12 }, (_, i) =>
      inScope(`sleeps ${i}`, undefined, async (scope) => {
        const { ctx, body } = request(large);
        body.end(Buffer.alloc(large));
        bodies.push(body);
        const { lend } = await readBody(ctx, "code", { scope, account: `sleeps ${i}` });
        expect(++underWay).to.equal(1);
        const from = performance.now();
        // Another one waits for its turn.
        do await sleep(turns.length === 0 ? 100 : 5);
        while (turns.length === 0 && !haveArrived());
        underWay--;
        turns.push({ from, to: performance.now() });
        lend(() => dropped.push(i));
        await stop.promise;
      }),
    );
    // Four have room, two of them while others want some.
    while (dropped.length < 8) await sleep(20);
    const [first, second] = turns;
    if (first === undefined || second === undefined) throw new Error("eight had a turn");
    // Small requests are served in between.
    expect(second.from - first.to).to.be.greaterThan(Math.min(2 * (first.to - first.from), 500));
    await expectReadIn(1_000, large);
    stop.resolve(undefined);
    await Promise.all(sleeping);
  });

  it("leave time after their turn also where their request is answered at once", async () => {
    const size = 2 * MIB;
    const bodies: PassThrough[] = [];
    const haveArrived = (): boolean => bodies.every(({ readableEnded }) => readableEnded);
    const turns: { readonly from: number; readonly to: number }[] = [];
    const refused = Array.from({ length: 3 }, (_, i) =>
      inScope(`refused ${i}`, undefined, async (scope) => {
        const { ctx, body } = request(size);
        bodies.push(body);
        body.end(Buffer.alloc(size));
        await readBody(ctx, "code", { scope, account: `refused ${i}` });
        const from = performance.now();
        do await sleep(100);
        while (!haveArrived());
        turns.push({ from, to: performance.now() });
      }),
    );
    await Promise.all(refused);
    for (const [i, { from }] of turns.slice(1).entries()) {
      const before = turns[i] ?? { from: NaN, to: NaN };
      expect(from - before.to).to.be.greaterThan(Math.min(2 * (before.to - before.from), 500));
    }
  });

  it("keep others waiting for a second, if what is made of one takes long", async () => {
    const stop = Promise.withResolvers<undefined>();
    const size = 2 * MIB;
    const stuck = inScope("stuck", undefined, async (scope) => {
      const { ctx, body } = request(size);
      body.end(Buffer.alloc(size));
      await readBody(ctx, "code", { scope, account: "stuck" });
      await stop.promise;
    });
    // Not those of unknown length that might have been as large.
    await expectReadIn(500, 100, request(100, "chunked"));
    await expectReadIn(3_000, size);
    stop.resolve(undefined);
    await stuck;
  });

  it("are bounded also below the size from which they count till the answer, and give way to others", async () => {
    const length = 63 * 1_024;
    const slow = Array.from({ length: 4_000 }, () => request(length));
    const over = new Set<number>();
    const ends = slow.map(({ ctx }, i) => read(ctx, `198.51.100.${i % 2}`).finally(() => over.add(i)));
    for (const { body } of slow) body.write(Buffer.alloc(60 * 1_024));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const underWay = slow.filter(({ body }, i) => body.readableLength === 0 && !over.has(i));
    expect(underWay.length).to.be.within(1, SHARED_LIMITS.arrivingBodyBytes / length);

    const quick = request(length);
    quick.body.end(Buffer.alloc(length));
    const startedAt = performance.now();
    expect(await read(quick.ctx, "203.0.113.2")).to.deep.equal({ bytes: length });
    expect(performance.now() - startedAt).to.be.below(3_000);
    for (const { body } of slow) body.destroy();
    const codes = (await Promise.all(ends)).map((end) => ("code" in end ? end.code : "read"));
    expect(codes.filter((code) => code === "queue_full").length).to.be.greaterThan(2_500);
    expect(new Set(codes)).to.deep.equal(new Set(["queue_full", "malformed_json"]));
  });
});

/** Each key is of an account of its own, and nothing is limited. */
const deps = {
  authentication: {
    isFamiliar: () => true,
    identify: (_auth: unknown, { key }: Presented) => ({
      remembered: undefined,
      caller: () => Promise.resolve(key && { accountId: key.id, actorId: key.id, isOwner: true, managed: true }),
    }),
  },
  limits: { request: () => undefined, requestBy: () => undefined, heavy: () => undefined },
  idempotency: undefined,
  addressHashKey: "",
  wasSubmitted: () => Promise.resolve(false),
  isHook: () => Promise.resolve(true),
} as unknown as ServeDeps;
const refuses = (): Promise<never> => Promise.reject(new KeywrightError("key_id_taken", "no"));
const GROUP = `{"group_name":"","group_description":""}`;
const jsonWithKey = () => ({ "content-type": "application/json", "x-api-key": randomBytes(32).toString("base64") });

describe("bodies of callers without an account", function () {
  this.timeout(40_000);

  for (const bytes of [60 * 1_024, MIB])
    it(`of ${bytes} bytes that never arrive, from many addresses of a network, keep no account's waiting`, async () => {
      const app = new Koa<RelayerState>({ proxy: true }).use(problems(silent));
      app.silent = true;
      app.use((ctx, next) => serve(ctx.path === "/cid" ? "getActionIpfsId" : "addGroup", refuses, deps)(ctx, next));
      const server = app.listen(0);
      const { port } = server.address() as AddressInfo;
      // As many as there is memory for, of all.
      const { arrivingBodyBytes, mediumBodyMemoryBytes, patienceMs } = SHARED_LIMITS;
      const count = bytes < MIB ? arrivingBodyBytes / bytes : mediumBodyMemoryBytes / bytes / 4;
      const stalled = Array.from({ length: Math.ceil(count) }, (_, i) => {
        const headers = { "content-type": "application/json", "x-forwarded-for": `2001:db8:0:${i.toString(16)}::1` };
        const asked = httpRequest({
          port,
          path: "/cid",
          method: "POST",
          headers: { ...headers, "content-length": bytes },
        });
        asked.on("error", () => undefined).write("{");
        return asked;
      });
      await sleep(500);

      const body = GROUP.padEnd(bytes);
      const startedAt = performance.now();
      const answer = await fetch(`http://127.0.0.1:${port}/group`, { method: "POST", body, headers: jsonWithKey() });
      expectInTime(performance.now() - startedAt, patienceMs / 3, "an account's body");
      expect(answer.status).to.equal(409);
      for (const asked of stalled) asked.destroy();
      server.close();
    });
});

describe("bodies of more than a megabyte of callers without an account", function () {
  this.timeout(40_000);

  it("are worked on in turn with an account's, from however many addresses they come", async () => {
    const large = MIB + 1;
    let [done, isOver] = [0, false];
    const work = (account: string, isAnonymous: boolean): Promise<void> =>
      inScope(account, undefined, async (scope) => {
        const { ctx, body } = request(large);
        body.end(Buffer.alloc(large));
        const { keepOnly } = await readBody(ctx, "code", { scope, account, isAnonymous });
        await sleep(5);
        keepOnly({});
      });
    const flood = Array.from({ length: 8 }, async (_, of) => {
      for (let at = 0; !isOver; at++) await work(`network ${of}.${at}`, true).finally(() => done++);
    });
    for (let at = 0; at < 4; at++) {
      const before = done;
      await work("account", false);
      expect(done - before, `turns before the account's ${at}.`).to.be.at.most(3);
    }
    isOver = true;
    await Promise.all(flood);
  });
});

describe("a body of which only a little is needed", function () {
  this.timeout(40_000);

  it("does not keep others from theirs until its request is answered", async () => {
    const end = Promise.withResolvers<undefined>();
    let underWay = 0;
    const handler = async (): Promise<never> => {
      underWay++;
      await end.promise;
      throw new KeywrightError("key_id_taken", "no");
    };
    const app = new Koa<RelayerState>().use(problems(silent)).use(serve("addGroup", handler, deps));
    const server = app.listen(0);
    const { port } = server.address() as AddressInfo;
    const body = GROUP.padEnd(MIB);
    const post = async (): Promise<number> =>
      (await fetch(`http://127.0.0.1:${port}`, { method: "POST", body, headers: jsonWithKey() })).status;
    // Twice as many as there is memory for while they are read.
    const count = SHARED_LIMITS.mediumBodyMemoryBytes / (2 * MIB);
    const answers = Array.from({ length: count }, post);
    for (let waited = 0; underWay < count && waited < 100; waited++) await sleep(50);
    expect(underWay).to.equal(count);
    end.resolve(undefined);
    expect(await Promise.all(answers)).to.deep.equal(Array(count).fill(409));
    server.close();
  });
});
