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

/**
 * Install scripts are disabled (.npmrc). secp256k1 brings binaries for these systems alone and is compiled elsewhere:
 * by these programs, of these packages of Debian.
 */
const BINARIES = ["linux-x64", "darwin-arm64", "win32-x64"];
const COMPILERS = { python3: "python3", make: "make", "c++": "g++" };
const system = `${process.platform}-${process.arch}`;
const isCompiled = !BINARIES.includes(system);
const compiled = join(modules, "secp256k1", "build", "Release", "addon.node");

function requireCompilers() {
  const missing = Object.keys(COMPILERS).filter((name) => spawnSync(name, ["--version"]).error !== undefined);
  if (missing.length === 0) return;
  const packages = missing.map((name) => COMPILERS[name]).join(" ");
  throw new Error(`On ${system} secp256k1 is compiled, which needs ${missing.join(", ")}: apt-get install ${packages}`);
}

/** The package's own script succeeds where the compiler fails. */
function compile() {
  console.error(`Compiling secp256k1, which has no binary for ${system} …`);
  run("npm", ["rebuild", "secp256k1", "--ignore-scripts=false", "--foreground-scripts"], projectEnvironment());
  if (!existsSync(compiled)) throw new Error("secp256k1 could not be compiled: the compiler's messages say why");
}

try {
  // Checked first: without a usable Node, or a compiler where one is needed, the installation is useless.
  if (!hasPackage) projectNode();
  if (isCompiled && !existsSync(compiled)) requireCompilers();
  if (packagesAreStale()) {
    console.error("Installing packages (about a minute the first time) …");
    run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
  }
  if (isCompiled && !existsSync(compiled)) compile();
  console.log(dirname(projectNode()));
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
