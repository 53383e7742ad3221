/** Expected failures. */
import { expect } from "chai";
import { KeywrightError, type ErrorCode } from "../../protocol/errors";

/** What a promise is rejected with; fails when it resolves. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

/** The KeywrightError of a rejected promise; throws any other error. */
export async function refusal(promise: Promise<unknown>): Promise<KeywrightError> {
  const error = await failureOf(promise);
  if (error instanceof KeywrightError) return error;
  throw error;
}

/** Expects the promise to be rejected with this error code; returns the error. */
export async function expectRefusal(promise: Promise<unknown>, code: ErrorCode): Promise<KeywrightError> {
  const error = await refusal(promise);
  expect(error.code).to.equal(code);
  return error;
}
