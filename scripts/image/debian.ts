/**
 * The Debian packages of an image, locked by version and SHA-256 (image/packages.lock). A package comes from the cache,
 * the machine's mirrors or Debian's permanent archive, and is used only when its hash matches the lock.
 */
import { createHash } from "node:crypto";
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { extract } from "tar-stream";
import type { Entry } from "./layout";

const run = promisify(execFile);
const PERMANENT_ARCHIVE = "https://snapshot.debian.org/archive/debian/";

export interface LockedPackage {
  readonly name: string;
  readonly version: string;
  /** Path in a Debian archive. */
  readonly path: string;
  /** A snapshot time at which the permanent archive has this version: YYYYMMDDTHHMMSSZ. */
  readonly seen: string;
  readonly sha256: string;
}

const LIBRARIES = String.raw`(usr/)?lib(64)?/`;

/** Files used of each package beside its licence: programs and libraries, never a shell or a package manager. */
const WANTED: Readonly<Record<string, RegExp>> = {
  libc6:
    /^lib(64|\/x86_64-linux-gnu)\/(ld-linux-x86-64|lib(c|m|dl|pthread|rt|resolv|util|nss_dns|nss_files))\.so\.\d+$/,
  "libstdc++6": /^usr\/lib\/x86_64-linux-gnu\/libstdc\+\+\.so/,
  "libgcc-s1": new RegExp(`^${LIBRARIES}.*libgcc_s\\.so`),
  "libcap-ng0": new RegExp(`^${LIBRARIES}.*libcap-ng\\.so`),
  libsmartcols1: new RegExp(`^${LIBRARIES}.*libsmartcols\\.so`),
  libselinux1: new RegExp(`^${LIBRARIES}.*libselinux\\.so`),
  "libpcre2-8-0": new RegExp(`^${LIBRARIES}.*libpcre2-8\\.so`),
  libcap2: new RegExp(`^${LIBRARIES}.*libcap\\.so`),
  bubblewrap: /^usr\/bin\/bwrap$/,
  "util-linux": /^usr\/bin\/(unshare|setpriv|prlimit)$/,
  coreutils: /^bin\/true$/,
  tini: /^usr\/bin\/tini$/,
};
export const PACKAGE_NAMES = Object.keys(WANTED);

export async function readLock(file: string): Promise<LockedPackage[]> {
  return JSON.parse(await readFile(file, "utf8")) as LockedPackage[];
}

/** Locks the newest versions on this machine's mirrors. Run `apt-get update` before. */
export async function newestPackages(): Promise<LockedPackage[]> {
  requirePrograms("locking Debian's packages", "apt-cache");
  const seen = `${new Date()
    .toISOString()
    .replace(/[-:]/g, "")
    .replace(/\.\d+Z$/, "Z")}`;
  return Promise.all(
    PACKAGE_NAMES.map(async (name) => {
      const { stdout } = await run("apt-cache", ["show", "--no-all-versions", `${name}:amd64`]);
      const field = (label: string): string => new RegExp(`^${label}: (.*)$`, "m").exec(stdout)?.[1] ?? "";
      return { name, version: field("Version"), path: field("Filename"), seen, sha256: field("SHA256") };
    }),
  );
}

/** The wanted files of every locked package. */
export async function debianEntries(lock: readonly LockedPackage[], cache: string): Promise<Entry[]> {
  await mkdir(cache, { recursive: true });
  await fillFromMirror(lock, cache);
  const entries = await Promise.all(lock.map(async (locked) => filesOf(locked.name, await packageFile(locked, cache))));
  return entries.flat();
}

const cached = ({ sha256 }: LockedPackage, cache: string): string => join(cache, `${sha256}.deb`);

async function packageFile(locked: LockedPackage, cache: string): Promise<string> {
  const file = cached(locked, cache);
  if (existsSync(file))
    return isLocked(locked, await readFile(file)) ? file : Promise.reject(new Error(`${file} was changed: delete it`));
  const bytes = await fromArchive(locked);
  if (!isLocked(locked, bytes))
    throw new Error(`${locked.name} ${locked.version} does not have the SHA-256 of image/packages.lock`);
  await keep(file, bytes);
  return file;
}

async function keep(file: string, bytes: Buffer): Promise<void> {
  const partial = `${file}.${process.pid}`;
  await writeFile(partial, bytes);
  await rename(partial, file);
}

const isLocked = ({ sha256 }: LockedPackage, bytes: Buffer): boolean =>
  createHash("sha256").update(bytes).digest("hex") === sha256;

/**
 * Puts into the cache what it lacks and the machine's mirrors have: in one command, since apt reads its lists for
 * seconds each time. Nothing without apt; a package of which they have another version is left to the archive.
 */
async function fillFromMirror(lock: readonly LockedPackage[], cache: string): Promise<void> {
  const lacking = lock.filter((locked) => !existsSync(cached(locked, cache)));
  if (lacking.length === 0) return;
  const folder = await mkdtemp(join(tmpdir(), "keywright-deb-"));
  const download = (some: readonly LockedPackage[]): Promise<unknown> =>
    run("apt-get", ["download", "-q", ...some.map(({ name, version }) => `${name}:amd64=${version}`)], { cwd: folder });
  try {
    // One that the mirrors lack fails the whole command.
    await download(lacking).catch(() => Promise.allSettled(lacking.map((one) => download([one]))));
    for (const file of await readdir(folder)) {
      const bytes = await readFile(join(folder, file));
      const locked = lacking.find((one) => isLocked(one, bytes));
      if (locked !== undefined) await keep(cached(locked, cache), bytes);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function fromArchive({ name, version, path, seen }: LockedPackage): Promise<Buffer> {
  const url = `${PERMANENT_ARCHIVE}${seen}/${path}`;
  const answer = await fetch(url).catch(() => undefined);
  if (answer?.ok !== true)
    throw new Error(
      `${name} ${version} (${basename(path)}) is neither in the cache, nor with this machine's mirrors, nor at ${url}`,
    );
  return Buffer.from(await answer.arrayBuffer());
}

/** Extracts the package with dpkg-deb, which outputs a plain tar. */
async function filesOf(name: string, file: string): Promise<Entry[]> {
  const wanted = WANTED[name];
  if (wanted === undefined) throw new Error(`image/packages.lock names ${name}, from which no image takes a file`);
  const { stdout } = await run("dpkg-deb", ["--fsys-tarfile", file], { encoding: "buffer", maxBuffer: 2 ** 28 });
  const entries: Entry[] = [];
  const reader = extract();
  reader.end(stdout);
  for await (const entry of reader) {
    const path = entry.header.name.replace(/^\.\//, "").replace(/\/$/, "");
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    const isWanted = wanted.test(path) || path === `usr/share/doc/${name}/copyright`;
    if (!isWanted) continue;
    if (entry.header.type === "symlink") entries.push({ path, link: entry.header.linkname ?? "" });
    else if (entry.header.type === "file")
      entries.push({ path, content: Buffer.concat(chunks), isExecutable: /(^|\/)bin\/|ld-linux/.test(path) });
  }
  return entries;
}

/** Of programs beyond npm's packages: Debian's package of each. */
const PROGRAMS = { git: "git", tar: "tar", "dpkg-deb": "dpkg", "apt-cache": "apt" } as const;

/** At the start, not after minutes of work. @throws an error that names the missing programs and their packages */
export function requirePrograms(purpose: string, ...names: (keyof typeof PROGRAMS)[]): void {
  const missing = names.filter((name) => spawnSync(name, ["--version"], { stdio: "ignore" }).error !== undefined);
  if (missing.length === 0) return;
  const packages = missing.map((name) => PROGRAMS[name]).join(", ");
  throw new Error(`${purpose} needs ${missing.join(", ")} (Debian's packages: ${packages})`);
}
