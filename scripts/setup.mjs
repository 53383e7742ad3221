// Installs the packages when node_modules is missing or older than the lockfile, then builds dist/. `npm start`, `npm test` and the others call it first,
// so that a fresh clone needs no other command.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

function packagesAreStale() {
  const installed = join(root, "node_modules", ".package-lock.json");
  return !existsSync(installed) || statSync(installed).mtimeMs < statSync(join(root, "package-lock.json")).mtimeMs;
}

if (packagesAreStale()) {
  console.log("Installing packages (about two minutes the first time) …");
  run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
}
run(process.execPath, [join(root, "scripts", "build.mjs")]);
