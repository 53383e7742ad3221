// Mocha's usual report, and beside it, for scripts/test.mjs, the figures and failures of the run: written where
// KEYWRIGHT_FIGURES says.
const { writeFileSync } = require("node:fs");
const { relative } = require("node:path");
const { reporters, Runner } = require("mocha");

const { EVENT_RUN_END, EVENT_SUITE_BEGIN, EVENT_SUITE_END, EVENT_TEST_FAIL, EVENT_TEST_PASS } = Runner.constants;
const SLOWEST = 15;
const seconds = (ms) => Math.round(ms / 100) / 10;
/** A bound of time was missed (test/support/inTime.ts), or mocha's, the browser's or a process's own. */
const LATE = new Set(["TooLate", "TimeoutError", "NotReadyInTime"]);
const isLate = (error) => LATE.has(error?.name) || error?.code === "ERR_MOCHA_TIMEOUT";
const fileOf = (item) => relative(process.cwd(), item.file ?? "");

module.exports = class TestReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const passed = [];
    const failed = [];
    const files = {};
    /** Files where a hook was late: their other hooks work on what it did not make. */
    const withoutSetUp = new Set();
    let began;
    runner.on(EVENT_TEST_PASS, (test) => passed.push(test));
    runner.on(EVENT_TEST_FAIL, (item, error) => {
      const file = fileOf(item);
      const isHook = item.type === "hook";
      if (isHook && isLate(error)) withoutSetUp.add(file);
      failed.push({
        file,
        test: item.fullTitle(),
        isHook,
        error: String(error?.stack ?? error),
        isLate: isLate(error) || (isHook && withoutSetUp.has(file)),
      });
    });
    // Of whole suites, since most of a file's time is in the hooks that start a stack.
    runner.on(EVENT_SUITE_BEGIN, (suite) => suite.parent?.root && (began = Date.now()));
    runner.on(EVENT_SUITE_END, (suite) => {
      if (suite.parent?.root) files[fileOf(suite)] = (files[fileOf(suite)] ?? 0) + Date.now() - began;
    });
    runner.once(EVENT_RUN_END, () => {
      const { passes, failures, pending, duration } = this.stats;
      const slowest = passed.sort((a, b) => b.duration - a.duration).slice(0, SLOWEST);
      const figures = {
        passes,
        failures,
        pending,
        seconds: seconds(duration),
        slowest: slowest.map((test) => ({ test: test.fullTitle(), seconds: seconds(test.duration) })),
        files: Object.fromEntries(Object.entries(files).map(([file, ms]) => [file, seconds(ms)])),
        passed: passed.map((test) => test.fullTitle()),
        failed,
      };
      writeFileSync(process.env.KEYWRIGHT_FIGURES, `${JSON.stringify(figures, undefined, 2)}\n`);
    });
  }
};
