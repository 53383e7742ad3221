import { expect } from "chai";
import { isDeepStrictEqual } from "node:util";

/**
 * Requires deep equality, for what is compared thousands of times: for every value that `expect` compares, Hardhat's
 * matchers search the disk for a package of big numbers that is not there.
 */
export function expectSame(actual: unknown, expected: unknown, what?: string): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual, what).to.deep.equal(expected);
}
