// Installs the packages when node_modules is missing or differs from the lockfile. Every npm script starts with it
// (scripts/env.sh), so that a fresh clone needs no other command. Runs under any Node of the machine; prints the folder
// of the Node that everything else runs on.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { hasPackage, projectEnvironment, projectNode } from "./node.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const modules = join(root, "node_modules");

/** Redirects to standard error: standard output carries only the result. */
function run(command, args, env = process.env) {
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: ["ignore", 2, 2] });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

/** Compares the installed packages with the lockfile; optional ones may be missing. */
function packagesAreStale() {
  const installed = packagesOf(join(modules, ".package-lock.json"));
  const wanted = Object.entries(packagesOf(join(root, "package-lock.json"))).filter(([path]) => path !== "");
  return wanted.some(([path, { version, optional }]) =>
    path in installed ? installed[path].version !== version : !optional,
  );
}

function packagesOf(lockfile) {
  return existsSync(lockfile) ? JSON.parse(readFileSync(lockfile, "utf8")).packages : {};
}

/** Install scripts are disabled (.npmrc). secp256k1 lacks binaries for some systems and is compiled there. */
function compileWhatHasNoBinary() {
  if (existsSync(join(modules, "secp256k1", "prebuilds", `${process.platform}-${process.arch}`))) return;
  console.error("Compiling secp256k1 (no binary for this system; this needs a C++ tool chain) …");
  run("npm", ["rebuild", "secp256k1", "--ignore-scripts=false", "--loglevel=error"], projectEnvironment());
}

try {
  // Checked first: without a usable Node the installation is useless.
  if (!hasPackage) projectNode();
  if (packagesAreStale()) {
    console.error("Installing packages (about a minute the first time) …");
    run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    compileWhatHasNoBinary();
  }
  console.log(dirname(projectNode()));
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
