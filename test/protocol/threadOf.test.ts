/** Threads for large work give way to the event loop of their process where the cores are busy. */
import { expect } from "chai";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { getPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { CidComputer } from "../../protocol/cidComputer";
import { MIB } from "../../protocol/limits";
import { ThreadOf } from "../../protocol/threadOf";

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

  it("answers each question, also where an answer cannot be posted or read, or the thread ends", async () => {
    const folder = mkdtempSync(join(tmpdir(), "keywright-thread-"));
    const file = join(folder, "nests.js");
    const built = join(__dirname, "..", "..", "dist", "protocol", "threadOf.js");
    writeFileSync(
      file,
      `require(${JSON.stringify(built)}).answerEach((depth) => {
        if (depth < 0) process.exit();
        let value = 0;
        for (let i = 0; i < depth; i++) value = [value];
        return value;
      });`,
    );
    const nests = new ThreadOf<number, unknown>(file);
    try {
      for (const depth of [1, 2_000, 4_000, 6_000, 8_000, 10_000, 12_000, 20_000, 100_000, -1, 1])
        await nests.ask(depth).catch((error: unknown) => expect(error).to.be.instanceOf(Error));
      expect(await nests.ask(1)).to.deep.equal([0]);
      expect(nests.waiting).to.equal(0);
    } finally {
      await nests.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
