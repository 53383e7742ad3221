// Mocha's usual report, and beside it the figures of the run for `npm run test:deep`, written where KEYWRIGHT_FIGURES
// says.
const { writeFileSync } = require("node:fs");
const { reporters, Runner } = require("mocha");

const SLOWEST = 15;
const seconds = (ms) => Math.round(ms / 100) / 10;

module.exports = class FiguresReporter extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const passed = [];
    runner.on(Runner.constants.EVENT_TEST_PASS, (test) => passed.push(test));
    runner.once(Runner.constants.EVENT_RUN_END, () => {
      const { passes, failures, pending, duration } = this.stats;
      const slowest = passed.sort((a, b) => b.duration - a.duration).slice(0, SLOWEST);
      const figures = {
        passes,
        failures,
        pending,
        seconds: seconds(duration),
        slowest: slowest.map((test) => ({ test: test.fullTitle(), seconds: seconds(test.duration) })),
      };
      writeFileSync(process.env.KEYWRIGHT_FIGURES, `${JSON.stringify(figures, undefined, 2)}\n`);
    });
  }
};
