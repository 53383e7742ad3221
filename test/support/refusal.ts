import { KeywrightError } from "../../protocol/errors";

/** The KeywrightError of a rejected promise; fails when it resolves. */
export async function refusal(promise: Promise<unknown>): Promise<KeywrightError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof KeywrightError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}
