/** An op that cannot be done: thrown inside the action as an Error with this `code`. Left uncaught, `permission_denied` is the code the run ends with. */
export class OpRefusal extends Error {
  override readonly name = "OpRefusal";
  constructor(
    readonly code: "permission_denied" | "limit_exceeded" | "invalid_arguments" | "decryption_failed",
    message: string,
  ) {
    super(message);
  }
}
