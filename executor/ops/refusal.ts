/**
 * A refused op: thrown inside the action as an Error with this `code`. If `permission_denied` is not caught, it becomes
 * the run's error code.
 */
export class OpRefusal extends Error {
  override readonly name = "OpRefusal";
  constructor(
    readonly code: "permission_denied" | "limit_exceeded" | "invalid_arguments" | "decryption_failed",
    message: string,
  ) {
    super(message);
  }
}
