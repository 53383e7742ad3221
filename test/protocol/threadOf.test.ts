/** Threads for large work give way to the event loop of their process where the cores are busy. */
import { expect } from "chai";
import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { CidComputer } from "../../protocol/cidComputer";
import { MIB } from "../../protocol/limits";

const TASKS = "/proc/self/task";
/** Counted from the field after the name. */
const NICE_FIELD = 16;
const niceOf = (thread: string): number => {
  const stat = readFileSync(`${TASKS}/${thread}/stat`, "latin1");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[NICE_FIELD]);
};

describe("a thread for large work", () => {
  it("has a lower priority than the event loop", async () => {
    const before = new Set(readdirSync(TASKS));
    const usual = getPriority();
    const cids = new CidComputer();
    try {
      await cids.of(Buffer.alloc(2 * MIB, "x"));
      const begun = readdirSync(TASKS).filter((thread) => !before.has(thread));
      expect(begun.map(niceOf)).to.include(Math.min(usual + 5, 19));
      expect(niceOf(String(process.pid))).to.equal(usual);
    } finally {
      await cids.close();
    }
  });
});
