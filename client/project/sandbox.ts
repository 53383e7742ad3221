/**
 * The real sandbox on this machine: the executor's own, with a throw-away PKP. The package carries it in `sandbox/`, and the project brings isolated-vm, which is
 * native and which nobody who only calls the service should have to install.
 */
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { WrongUse } from "../cli/failure";

/** What a run asked of its surroundings, in order. */
export type Recorded =
  | { readonly kind: "op"; readonly name: string; readonly args: unknown; readonly ok: boolean; readonly error?: string }
  | { readonly kind: "fetch"; readonly method: string; readonly url: string; readonly status?: number; readonly error?: string };

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
  readonly pkpId: string;
  readonly level: { readonly level: string; readonly missing: readonly string[] };
  run(code: string, params: Record<string, unknown>, wallMs?: number): Promise<LocalOutcome>;
  close(): Promise<void>;
}

export interface LocalSandboxOptions {
  readonly seed?: string;
  readonly allowHosts?: readonly string[];
}

type Start = (options: LocalSandboxOptions) => Promise<LocalSandbox>;

/** Beside the program in the package, and where a build of this repository puts it. */
const PLACES = ["../sandbox/localRun.js", "sandbox/localRun.js", "../../scripts/action/localRun.js", "../../dist/scripts/action/localRun.js"];

export async function startSandbox(folder: string, options: LocalSandboxOptions = {}): Promise<LocalSandbox> {
  const place = PLACES.map((path) => join(__dirname, path)).find(existsSync);
  if (place === undefined) throw new WrongUse("The sandbox is not part of this installation.");
  const isolatedVm = requireIsolatedVm(folder, place);
  const isRoot = process.getuid?.() === 0;
  const readable = isRoot ? readableCopy(dirname(place), isolatedVm) : undefined;
  const program = readable === undefined ? place : join(readable, basename(place));
  const { createLocalRunner } = createRequire(program)(program) as { createLocalRunner: Start };
  const sandbox = await createLocalRunner(options);
  const close = async (): Promise<void> => {
    await sandbox.close();
    if (readable !== undefined) rmSync(readable, { recursive: true, force: true });
  };
  return { ...sandbox, close };
}

/** Started by root, the processes that run actions become other users, who may not be able to read the folder of root's project. */
function readableCopy(from: string, isolatedVm: string): string | undefined {
  if (basename(from) !== "sandbox") return undefined;
  const copy = mkdtempSync(join(tmpdir(), "keywright-sandbox-"));
  chmodSync(copy, 0o755);
  cpSync(from, copy, { recursive: true });
  mkdirSync(join(copy, "node_modules"));
  symlinkSync(isolatedVm, join(copy, "node_modules", "isolated-vm"));
  return copy;
}

/** Its folder. */
function requireIsolatedVm(folder: string, place: string): string {
  for (const from of [place, join(folder, "package.json")]) {
    try {
      return dirname(createRequire(from).resolve("isolated-vm"));
    } catch {
      // The next place.
    }
  }
  throw new WrongUse("The sandbox needs isolated-vm: npm install --save-dev isolated-vm");
}
