/** One step of a deployment, and what the steps before it have made. */
export interface Step {
  readonly mark: "+" | "~" | "-";
  readonly text: string;
  readonly run: (created: Created, keep: Keep) => Promise<void>;
}

/** Stores a secret, shown once, as soon as it is made: what fails later may still take effect. */
export type Keep = (name: string, secret: unknown) => void;

/** Results of earlier steps by name. */
export interface Created {
  readonly pkps: Map<string, string>;
  readonly groups: Map<string, string>;
}
