import { expect } from "chai";
import fc from "fast-check";
import { totalmem } from "node:os";
import {
  childrenFor,
  memoryLimitBytes,
  memoryOfChildren,
  privateBytes,
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

  it("ends idle children first, then at most the largest run, and never one within its share", () => {
    const bytes = fc.nat(200);
    fc.assert(
      fc.property(fc.array(bytes, { maxLength: 6 }), fc.array(bytes, { minLength: 1, maxLength: 4 }), (idle, busy) => {
        const over = toEnd(
          idle.map((each, i) => ({ of: i, bytes: each })),
          busy.map((each, i) => ({ of: i, bytes: each })),
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
          expect(busy[over.busy])
            .to.equal(Math.max(...busy))
            .and.above(100);
          expect(over.idle).to.have.lengthOf(idle.length);
        }
      }),
      { seed: SEED, numRuns: count(300, 10_000) },
    );
  });

  it("is read from the kernel", () => {
    expect(privateBytes(process.pid)).to.be.above(2 ** 20);
    expect(privateBytes(undefined)).to.equal(0);
  });
});
