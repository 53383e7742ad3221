import { KeywrightError } from "../../protocol/errors";

/** The KeywrightError a promise is refused with; fails when it is not. */
export async function refusal(promise: Promise<unknown>): Promise<KeywrightError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof KeywrightError) return error;
    throw error;
  }
  throw new Error("it was not refused");
}
