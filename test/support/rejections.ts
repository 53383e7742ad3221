import { expect } from "chai";
import { KeywrightError, type ErrorCode } from "../../protocol/errors";

/** The promise fails with this named error, which is returned for a closer look. */
export async function expectRejection(promise: Promise<unknown>, code: ErrorCode): Promise<KeywrightError> {
  try {
    await promise;
  } catch (error) {
    if (!(error instanceof KeywrightError)) throw error;
    expect(error.code).to.equal(code);
    return error;
  }
  throw new Error(`expected ${code}, but it succeeded`);
}
