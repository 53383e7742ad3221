/** Blocks of the event loop, measured: how long, and how much of it was this thread's own computing. */
import { expect } from "chai";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { LoopWatch } from "../../../executor/liveness/loopWatch";
import { expectInTime, itInTime } from "../../support/inTime";

const BLOCK_MS = 150;
const RESOLUTION_MS = 20;
/** A second is noted as a whole. */
const NOTED_MS = 1_200;

describe("the watch of the event loop", () => {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  let watch: LoopWatch;
  beforeEach(() => {
    lines.length = 0;
    watch = new LoopWatch(logger);
  });
  afterEach(() => watch.stop());

  async function measured(block: () => void): Promise<{ held: number; computed: number }> {
    await sleep(3 * RESOLUTION_MS);
    block();
    await sleep(NOTED_MS);
    return { held: Math.max(...watch.held.heldMs), computed: Math.max(...watch.held.computedMs) };
  }

  it("reports computing that blocks it, and logs it", async () => {
    const { held, computed } = await measured(() => {
      // Computing, not waiting for a core.
      const before = process.threadCpuUsage();
      while (process.threadCpuUsage(before).user < BLOCK_MS * 1_000);
    });
    expect(held).to.be.at.least(BLOCK_MS - RESOLUTION_MS - 1);
    expect(computed).to.be.at.least(BLOCK_MS);
    expect(lines.some(({ heldMs }) => heldMs === held)).to.equal(true);
  });

  itInTime("tells waiting from computing", async () => {
    const { held, computed } = await measured(() => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCK_MS);
    });
    expect(held).to.be.at.least(BLOCK_MS - RESOLUTION_MS - 1);
    expectInTime(computed, BLOCK_MS / 2);
  });
});
