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
