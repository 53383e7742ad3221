import { AssertionError } from "chai";

const TRIES = 3;

/** It took longer than it may. Known to scripts/testReporter.cjs by its name. */
export class TooLate extends AssertionError {
  override readonly name = "TooLate";
}

/** The bound of a test that `itInTime` runs. */
export function expectInTime(took: number | undefined, bound: number, what = "time in ms"): void {
  if (took === undefined || !(took < bound)) throw new TooLate(`${what}: expected ${took} to be below ${bound}`);
}

/**
 * A test whose bound is a time: a busy machine may exceed it once, a fault does so on each of three tries. Everything
 * else has to hold on every try.
 */
export function itInTime(title: string, test: (this: Mocha.Context) => Promise<unknown>): Mocha.Test {
  return it(title, async function () {
    for (let tried = 1; ; tried++) {
      try {
        await test.call(this);
        return;
      } catch (error) {
        if (!(error instanceof TooLate) || tried === TRIES) throw error;
      }
    }
  });
}
