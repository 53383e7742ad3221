import { expect } from "chai";
import fc from "fast-check";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { totalmem } from "node:os";
import {
  childrenFor,
  memoryLimitBytes,
  memoryOfChildren,
  ProcessUse,
  slotsFor,
  toEnd,
} from "../../../executor/sandbox/memory";
import { SEED, count } from "../../support/counts";

const GIB = 2 ** 30;

describe("the memory of all children", () => {
  it("is half of the container's limit, and never more than the machine has", () => {
    expect(memoryLimitBytes()).to.be.within(1, totalmem());
    expect(memoryOfChildren(8 * GIB)).to.equal(4 * GIB);
  });

  it("gives every slot its whole heap, and warm children the rest", () => {
    for (const [memory, cores, slots] of [
      [1, 2, 4],
      [4, 2, 8],
      [2, 16, 8],
      [16, 64, 32],
      [0.1, 8, 2],
    ] as const) {
      expect(slotsFor(memory * GIB, 128, cores), `${memory} GiB, ${cores} cores`).to.equal(slots);
    }
    expect(childrenFor(4 * GIB, 8)).to.equal(40);
    expect(childrenFor(16 * GIB, 8)).to.equal(48);
    expect(childrenFor(GIB, 8)).to.equal(10);
  });

  it("ends idle children first, then at most the largest run", () => {
    const bytes = fc.nat(200);
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 6 }), fc.array(bytes, { minLength: 1, maxLength: 4 }), (idle, busy) => {
        const over = toEnd(
          idle.map((each, i) => ({ of: i, bytes: each })),
          busy.map((each, i) => ({ of: i, bytes: each, account: String(i) })),
          400,
          4,
        );
        const left = (list: readonly number[], from: number): number =>
          list.slice(from).reduce((sum, each) => sum + each, 0);
        const after = left(idle, over.idle.length) + left(busy, 0);
        expect(over.idle).to.deep.equal(idle.slice(0, over.idle.length).map((_, i) => i));
        if (over.idle.length > 0)
          expect(after + (idle[over.idle.length - 1] ?? 0), "no more than needed").to.be.above(400);
        expect(over.busy === undefined).to.equal(after <= 400);
        if (over.busy !== undefined) {
          expect(busy[over.busy]).to.equal(Math.max(...busy));
          expect(over.idle).to.have.lengthOf(idle.length);
        }
      }),
      { seed: SEED, numRuns: count(300, 10_000) },
    );
  });

  it("ends a run of the account that has most, if none alone has more than its share", () => {
    const run = (account: string, bytes: number) => ({ of: `${account}${bytes}`, account, bytes });
    const busy = [run("honest", 95), ...[40, 60, 50, 45].map((bytes) => run("many", bytes)), run("other", 90)];
    expect(toEnd([], busy, 400, 4)).to.deep.equal({ idle: [], busy: undefined });
    expect(toEnd([], busy, 379, 3).busy).to.equal("many60");
    expect(toEnd([], [...busy, run("greedy", 130)], 379, 3).busy).to.equal("greedy130");
  });

  it("is read from the kernel", () => {
    const memory = new ProcessUse(process.pid);
    const { resident, unshared, data } = memory.memory();
    expect(unshared).to.be.above(2 ** 20);
    expect(resident).to.be.above(unshared);
    expect(data).to.be.above(2 ** 20);
    // The collector may free as much between two readings, so several growths are looked at.
    const grew = Array.from({ length: 5 }, () => {
      const before = memory.memory().resident;
      const held = Buffer.alloc(64 * 2 ** 20, 1);
      return memory.memory().resident > before + held.length / 2;
    });
    expect(grew, "read anew").to.include(true);
    memory.close();
    memory.close();
    expect(memory.memory()).to.deep.equal({ resident: 0, unshared: 0, data: 0 });
  });

  it("of a process that has ended is 0, though its number may be another's", async () => {
    const child = spawn("sleep", ["60"]);
    await once(child, "spawn");
    const memory = new ProcessUse(child.pid ?? 0);
    expect(memory.memory().resident).to.be.above(0);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(memory.memory()).to.deep.equal({ resident: 0, unshared: 0, data: 0 });
    memory.close();
    expect(new ProcessUse(child.pid).memory().resident).to.equal(0);
  });
});
