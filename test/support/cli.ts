/** The command line in this process, with the test's own I/O. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Io } from "../../client/cli/io";
import { runCli } from "../../client/cli/program";

export interface CliRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** Standard output as JSON. */
  json<T = Record<string, unknown>>(): T;
}

export interface TestCli {
  readonly cwd: string;
  readonly env: Record<string, string | undefined>;
  /** Input for secret prompts. */
  secrets: string[];
  /** Runs one command line; arguments are split at spaces, those in `more` are not split. */
  run(line: string, ...more: string[]): Promise<CliRun>;
  /** As `run`, and requires exit code 0. */
  ok(line: string, ...more: string[]): Promise<CliRun>;
  remove(): void;
}

export function testCli(env: Record<string, string | undefined> = {}): TestCli {
  const cwd = mkdtempSync(join(tmpdir(), "keywright-cli-"));
  const secrets: string[] = [];
  const surroundings = { KEYWRIGHT_CONFIG: join(cwd, "credentials.json"), ...env };
  const run = async (line: string, ...more: string[]): Promise<CliRun> => {
    let out = "";
    let err = "";
    const io: Io = {
      env: surroundings,
      cwd,
      terminal: false,
      columns: Infinity,
      out: (text) => void (out += text),
      err: (text) => void (err += text),
      secret: async () => secrets.shift() ?? "",
      confirm: async () => false,
    };
    const code = await runCli([...line.split(" ").filter((word) => word !== ""), ...more], io);
    return { code, out, err, json: <T>() => JSON.parse(out) as T };
  };
  return {
    cwd,
    env: surroundings,
    secrets,
    run,
    ok: async (line, ...more) => {
      const result = await run(line, ...more);
      if (result.code !== 0)
        throw new Error(`keywright ${line} ${more.join(" ")} ended with ${result.code}\n${result.out}${result.err}`);
      return result;
    },
    remove: () => rmSync(cwd, { recursive: true, force: true }),
  };
}
