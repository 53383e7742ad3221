import { OpRefusal } from "./refusal";

/**
 * Makes bytes of what an action gave. Whatever a library says to that is about the action's values: the action may catch it and mend them.
 * @throws OpRefusal `invalid_arguments`.
 */
export function encoded<T>(what: string, encode: () => T): T {
  try {
    return encode();
  } catch (error) {
    if (error instanceof OpRefusal) throw error;
    throw new OpRefusal("invalid_arguments", `the ${what} cannot be encoded: ${reason(error)}`);
  }
}

/** ethers puts the offending values behind the first parenthesis; the author needs the sentence before it. */
function reason(error: unknown): string {
  return error instanceof Error ? (error.message.split(" (")[0] ?? "").slice(0, 300) : "unknown reason";
}
