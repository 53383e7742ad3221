import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

interface Failure {
  readonly test: string;
  readonly isHook: boolean;
  readonly isLate: boolean;
}

const late = (name: string) => `{ const late = new Error("late"); late.name = "${name}"; throw late; }`;
const FILES = {
  "bounds.js": `
    it("own bound", () => ${late("TooLate")});
    it("browser's bound", () => ${late("TimeoutError")});
    it("mocha's bound", function (done) { this.timeout(1); });
    it("fault", () => { throw new Error("wrong"); });`,
  "lateHook.js": `
    describe("late set-up", () => {
      let stack;
      before(() => ${late("NotReadyInTime")});
      after(() => stack.stop());
      it("needs it", () => undefined);
    });`,
  "faultyHook.js": `
    describe("faulty hook", () => {
      it("is late", () => ${late("TooLate")});
      after(() => { throw new Error("wrong"); });
    });`,
};

describe("the report of tests", () => {
  const folder = mkdtempSync(join(tmpdir(), "keywright-report-"));
  after(() => rmSync(folder, { recursive: true }));

  it("tells bounds of time that were missed, and what follows from a late hook, from faults", () => {
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text);
    const figures = join(folder, "figures.json");
    const mocha = resolve("node_modules", "mocha", "bin", "mocha.js");
    const reporter = resolve("scripts", "testReporter.cjs");
    spawnSync(
      process.execPath,
      [mocha, "--no-config", "--reporter", reporter, ...Object.keys(FILES).map((name) => join(folder, name))],
      { env: { ...process.env, KEYWRIGHT_FIGURES: figures } },
    );
    const { failed } = JSON.parse(readFileSync(figures, "utf8")) as { failed: Failure[] };
    const told = failed.map(({ test, isHook, isLate }) => [test, isHook ? "hook" : "test", isLate ? "late" : "fault"]);
    expect(told).to.have.deep.members([
      ["own bound", "test", "late"],
      ["browser's bound", "test", "late"],
      ["mocha's bound", "test", "late"],
      ["fault", "test", "fault"],
      ['late set-up "before all" hook for "needs it"', "hook", "late"],
      ['late set-up "after all" hook for "needs it"', "hook", "late"],
      ["faulty hook is late", "test", "late"],
      ['faulty hook "after all" hook for "is late"', "hook", "fault"],
    ]);
  });
});
