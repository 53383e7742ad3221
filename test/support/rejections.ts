import { expect } from "chai";
import { KeywrightError, type ErrorCode } from "../../protocol/errors";

/** Expects the promise to fail with this error code; returns the error. */
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
