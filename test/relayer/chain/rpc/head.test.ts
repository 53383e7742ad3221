/**
 * The head: waiting calls are woken by the next block, a silent chain's head ages, and no call waits beyond its
 * deadline.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { pino } from "pino";
import type { RpcClient } from "../../../../relayer/chain/rpc/client";
import { Head } from "../../../../relayer/chain/rpc/head";
import { expectInTime, itInTime } from "../../../support/inTime";

describe("the chain's head", () => {
  let number: number;
  let isAway: boolean;
  let asked: number;
  let head: Head;
  let create: (fastestPollMs: number) => Head;
  beforeEach(() => {
    [number, isAway, asked] = [7, false, 0];
    const call = async (): Promise<string> => {
      asked += 1;
      if (isAway) throw new Error("away");
      return `0x${number.toString(16)}`;
    };
    create = (fastestPollMs) =>
      new Head({
        rpc: { call } as unknown as RpcClient,
        log: pino({ level: "silent" }),
        fastestPollMs,
        slowestPollMs: 10_000,
      });
    head = create(5);
  });
  afterEach(() => head.stop());

  it("is unknown and of no age before the first answer", async () => {
    expect([head.number, head.ageSeconds]).to.deep.equal([0, Infinity]);
    head.start();
    await head.next(1_000);
    expect(head.number).to.equal(7);
    expect(head.ageSeconds).to.be.lessThan(1);
  });

  it("wakes all waiting calls when it moves, polling often while a call waits", async () => {
    head.start();
    await head.next(1_000);
    await sleep(50);
    const quiet = asked;
    const waiting = Promise.all([head.next(5_000), head.next(5_000)]);
    number = 8;
    await waiting;
    expect(head.number).to.equal(8);
    expect(asked).to.be.greaterThan(quiet);
  });

  itInTime("asks early for the first call that waits, and then no sooner than it may", async () => {
    head = create(1_000);
    head.start();
    await head.next(5_000);
    number = 8;
    const before = asked;
    const started = Date.now();
    await head.next(5_000);
    expectInTime(Date.now() - started, 900, "a block that was mined at once");
    expect(asked - before).to.equal(1);
    await head.next(700);
    expect(asked - before, "an early poll that found nothing is not followed by another").to.equal(2);
  });

  it("lets no call wait beyond its deadline, nor beyond its own close", async () => {
    head.start();
    await head.next(1_000);
    const started = Date.now();
    await head.next(20);
    expect(Date.now() - started).to.be.lessThan(5_000);
    const waiting = head.next(60_000);
    head.stop();
    await waiting;
    await head.next(60_000);
  });

  it("stays, and ages, while the chain does not answer", async () => {
    head.start();
    await head.next(1_000);
    isAway = true;
    await head.next(60);
    expect(head.number).to.equal(7);
    expect(head.ageSeconds).to.be.greaterThan(0.03);
  });
});
