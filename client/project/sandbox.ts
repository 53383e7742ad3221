/**
 * Runs the executor's real sandbox locally, with a throw-away PKP. The package ships it in `sandbox/`; the project
 * installs isolated-vm, a native module that callers of the service do not need.
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { WrongUse } from "../errors";

/** The run's ops and fetches, in order. Arguments as the action gave them; of answers only the status. */
export type Recorded =
  | {
      readonly kind: "op";
      readonly name: string;
      readonly args: unknown;
      readonly ok: boolean;
      readonly error?: string;
    }
  | {
      readonly kind: "fetch";
      readonly method: string;
      readonly url: string;
      readonly status?: number;
      readonly error?: string;
    };

export interface LocalOutcome {
  /** JSON text. */
  readonly response: string;
  readonly logs: string;
  readonly error?: { readonly code: string; readonly message: string; readonly stack?: string };
  readonly durationMs: number;
  readonly cid: string;
  readonly recorded: readonly Recorded[];
}

export interface LocalSandbox {
  /** The address of the PKP. */
  readonly pkpId: string;
  readonly level: { readonly level: string; readonly missing: readonly string[] };
  /** Runs code with parameters; adds `pkpId` unless they give another. */
  run(code: string, params: Record<string, unknown>, wallMs?: number): Promise<LocalOutcome>;
  close(): Promise<void>;
}

export interface LocalSandboxOptions {
  /**
   * The same seed gives the same keys again, for example to decrypt an earlier run's ciphertext. Without it keys live
   * as long as the process.
   */
  readonly seed?: string;
  /** Non-public hosts, or host:port, that the action may fetch from. */
  readonly allowHosts?: readonly string[];
}

type Start = (options: LocalSandboxOptions) => Promise<LocalSandbox>;

/** In the package beside the program, and in a build of this repository. */
const PLACES = [
  "../sandbox/localRun.js",
  "sandbox/localRun.js",
  "../../scripts/action/localRun.js",
  "../../dist/scripts/action/localRun.js",
];

export async function startSandbox(folder: string, options: LocalSandboxOptions = {}): Promise<LocalSandbox> {
  const place = PLACES.map((path) => join(__dirname, path)).find(existsSync);
  if (place === undefined) throw new WrongUse("The sandbox is not part of this installation.");
  requireIsolatedVm(folder, place);
  const { createLocalRunner } = createRequire(place)(place) as { createLocalRunner: Start };
  return createLocalRunner(options);
}

function requireIsolatedVm(folder: string, place: string): void {
  for (const from of [place, join(folder, "package.json")]) {
    try {
      createRequire(from).resolve("isolated-vm");
      return;
    } catch {
      // Try the next path.
    }
  }
  throw new WrongUse(
    `Runs on this machine need Node 24 (this is ${process.versions.node}) and isolated-vm: ` +
      "npm install --save-optional isolated-vm@7. Building and deploying need neither.",
  );
}
