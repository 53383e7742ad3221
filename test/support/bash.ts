/**
 * Runs the commands of documentation pages unchanged: the `sh` blocks of Markdown in one bash, with the built program
 * `keywright`.
 */
import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compileCache } from "../../scripts/dev/processes";

const ROOT = join(__dirname, "..", "..");

const blocksOf = (page: string, language: string): string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(([, block = ""]) => block);

/** The commands that a page shows. */
export const commandsOf = (page: string): string[] => blocksOf(page, "sh");

/** Those, line by line. */
export const linesOf = (page: string): string[] => commandsOf(page).flatMap((block) => block.trim().split("\n"));

/** The output lines that a page promises; "…" stands for any text. */
export const promisedLines = (page: string): RegExp[] =>
  blocksOf(page, "text")
    .flatMap((block) => block.trimEnd().split("\n"))
    .map((line) => new RegExp(`^${line.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("…", ".*")}$`));

export function bash(
  script: string,
  cwd: string,
  env: Record<string, string | undefined>,
): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve) => {
    const child = spawn("bash", ["-euo", "pipefail", "-c", script], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
    child.once("close", (code) => resolve({ code, text }));
  });
}

/** A folder for PATH that holds `keywright`. */
export function programFolder(folder: string): string {
  const bin = join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  const program = join(bin, "keywright");
  writeFileSync(
    program,
    `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, "dist", "client", "cli", "main.js")}" "$@"\n`,
  );
  chmodSync(program, 0o755);
  return bin;
}

/**
 * A folder for PATH with an `npm` that starts a script's built program without rebuilding it: a rebuild would remove
 * dist/ while services run from it.
 */
export function npmIn(folder: string): string {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  const cases = Object.entries(scripts).flatMap(([name, script]) => {
    const [, program] = /^sh scripts\/run\.sh node (dist\/scripts\/\w+\.js)$/.exec(script) ?? [];
    return program === undefined ? [] : [`${name}) exec "${process.execPath}" "${join(ROOT, program)}" "$@";;`];
  });
  const bin = join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  const file = join(bin, "npm");
  writeFileSync(file, `#!/bin/sh\nscript=$2; shift 3\ncase $script in\n${cases.join("\n")}\nesac\nexit 127\n`);
  chmodSync(file, 0o755);
  return bin;
}

/** The environment of the commands. */
export const surroundings = (bin: string, more: Record<string, string>): Record<string, string | undefined> => {
  const { PATH, HOME } = process.env;
  return { PATH: `${bin}:${join(process.execPath, "..")}:${PATH}`, HOME, ...compileCache(), ...more };
};
