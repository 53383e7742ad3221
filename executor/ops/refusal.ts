/**
 * A refused op: thrown inside the action as an Error with this `code`. `permission_denied`, `limit_exceeded` and
 * `budget_exceeded`, if not caught, become the run's error code.
 */
export class OpRefusal extends Error {
  override readonly name = "OpRefusal";
  constructor(
    readonly code:
      | "permission_denied"
      | "limit_exceeded"
      | "invalid_arguments"
      | "decryption_failed"
      | "budget_exceeded"
      | "budget_unavailable",
    message: string,
  ) {
    super(message);
  }
}

/**
 * Encodes an action's values. Any error of the library concerns those values: the action may catch it and correct them.
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

/** ethers appends the offending values in parentheses; keep only the message before them. */
function reason(error: unknown): string {
  return error instanceof Error ? (error.message.split(" (")[0] ?? "").slice(0, 300) : "unknown reason";
}
