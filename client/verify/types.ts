/** The steps of a verification and their results. */
import { parseJson } from "../../protocol/json";

/** Steps in display order. Each can fail on its own. */
export const STEPS = {
  signature: "Quote signature and TCB",
  machineImage: "Machine image",
  freshness: "Freshness (nonce)",
  config: "Config document",
  eventLog: "Event log replays to the quote's registers",
  composeHash: "Compose hash",
  keyProvider: "Key management",
  allowlist: "Allow-list contract",
  images: "Images pinned by digest",
  imageContents: "What is inside the image",
  packages: "Packages that the service serves",
  evidenceQuote: "Evidence quote",
  evidenceFiles: "Evidence files",
  tlsLeaf: "TLS certificate of this connection",
  keyNamespace: "Key namespace",
  rootKey: "Root key",
} as const;
export type StepId = keyof typeof STEPS;
export const STEP_IDS = Object.keys(STEPS) as StepId[];

/** `not_checked` says that the step proves nothing either way; it never counts as success. */
export type StepStatus = "passed" | "failed" | "not_checked";

export interface StepResult {
  readonly status: StepStatus;
  /**
   * One sentence: what was found, or what is wrong. Text from the service is truncated and stripped of control
   * characters.
   */
  readonly detail: string;
}

export interface Step extends StepResult {
  readonly id: StepId;
  readonly title: string;
}

/**
 * `verified` every step passed · `failed` at least one failed · `simulated` none failed, but the service states that
 * its quotes are simulated · `incomplete` none failed, and some could not be checked.
 */
export type Outcome = "verified" | "failed" | "simulated" | "incomplete";
export const EXIT_CODES: Readonly<Record<Outcome, number>> = { verified: 0, failed: 1, simulated: 2, incomplete: 3 };

export interface Report {
  /** Of recorded evidence: what its keeper says. */
  readonly baseUrl: string;
  /** From a file instead of a connection. */
  readonly isRecorded: boolean;
  /** Of the account contract, where the config document that names it is attested, or the service simulated. */
  readonly contract?: string;
  /** The service's own claim; only `dstack` can be verified. */
  readonly tee: "dstack" | "simulated" | "none" | "unknown";
  readonly steps: readonly Step[];
  readonly outcome: Outcome;
  readonly exitCode: number;
  /** Facts for the user to judge, of that document and that contract, or none: sandbox level, RPC hosts, … */
  readonly notes: readonly string[];
  /** Important although nothing failed: new payers or images that take effect immediately. */
  readonly warnings: readonly string[];
}

export const passed = (detail: string): StepResult => ({ status: "passed", detail: clean(detail) });
export const failed = (detail: string): StepResult => ({ status: "failed", detail: clean(detail) });
export const notChecked = (detail: string): StepResult => ({ status: "not_checked", detail: clean(detail) });

/** Data from the service is malformed. The message says which and why. */
export class Malformed extends Error {
  override readonly name = "Malformed";
}

const MAX_DETAIL = 400;

/** Makes text from the service safe for a terminal: no control characters, bounded length. */
export function clean(text: string): string {
  const plain = text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ");
  return plain.length > MAX_DETAIL ? `${plain.slice(0, MAX_DETAIL)}…` : plain;
}

/** Parses JSON; throws Malformed naming the input. */
export function jsonOf(text: string, name: string): unknown {
  const value = parseJson(text);
  if (value === undefined) throw new Malformed(`${name} is not JSON`);
  return value;
}
