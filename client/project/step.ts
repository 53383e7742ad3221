/** One step of a deployment, and what the steps before it have made. */
export interface Step {
  readonly mark: "+" | "~" | "-";
  readonly text: string;
  readonly run: (created: Created) => Promise<void>;
}

/** Results of earlier steps by name, and the secrets to store. */
export interface Created {
  readonly pkps: Map<string, string>;
  readonly groups: Map<string, string>;
  /** Usage keys by name: shown once. */
  readonly secrets: Record<string, string>;
}
