/** An op that cannot be done, for the action to read. `permission_denied` and `limit_exceeded` end the run; any other code is thrown inside it. */
export class OpRefusal extends Error {
  override readonly name = "OpRefusal";
  constructor(
    readonly code: "permission_denied" | "invalid_arguments" | "decryption_failed",
    message: string,
  ) {
    super(message);
  }
}
