/** Builds an OCI layout for each service from a source folder. Reproducible: the same commit gives the same digests. */
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { moduleEntries, nodeEntries, programEntries, systemEntries } from "./contents";
import { debianEntries, readLock, requirePrograms } from "./debian";
import { layerOf, writeLayout, type ImageSettings, type WrittenImage } from "./layout";
import { sbomEntry } from "./sbom";
import { buildSource, exportSource, installPackages } from "./source";
import { NODE_OPTIONS } from "../nodeOptions";

export const IMAGE_NAMES = ["relayer", "executor", "ingress"] as const;
export const COMPOSE_FILE = "compose.yaml";
export type ImageName = (typeof IMAGE_NAMES)[number];
export type Images = Readonly<Record<ImageName, WrittenImage>>;

export interface BuildOptions {
  /** The repository, or a folder with its files. */
  readonly source: string;
  /** Output folder of the layouts, `<output>/relayer` and so on, and of the compose.yaml that runs them. */
  readonly output: string;
  /** Cache of Debian packages between builds. */
  readonly cache?: string;
  /** A node_modules of the same lockfile to use instead of installing, with what was built beside it. */
  readonly installed?: string;
}

const COMMON: Pick<ImageSettings, "env" | "entrypoint"> = {
  env: ["NODE_ENV=production", "PATH=/usr/bin:/bin"],
  // tini, as PID 1, reaps orphaned processes and forwards signals.
  entrypoint: ["/usr/bin/tini", "--", "/usr/bin/node", "--enable-source-maps"],
};

/**
 * User and capabilities as compose.yaml needs them: the executor starts as root to run its children as separate users.
 */
const SETTINGS: Readonly<Record<ImageName, ImageSettings>> = {
  relayer: {
    ...COMMON,
    user: "61001:61000",
    cmd: [...NODE_OPTIONS.relayer, "/app/dist/relayer/main.js"],
    ports: ["8000", "9464"],
    labels: labelsOf("relayer"),
  },
  ingress: {
    ...COMMON,
    user: "61002:61000",
    cmd: ["/app/dist/ingress/main.js"],
    ports: ["8080", "8443"],
    labels: labelsOf("ingress"),
  },
  executor: {
    ...COMMON,
    user: "0:0",
    cmd: [...NODE_OPTIONS.executor, "/app/dist/executor/main.js"],
    ports: [],
    labels: labelsOf("executor"),
  },
};

export const defaultCache = (): string =>
  join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "keywright-image");

export async function buildImages({
  source,
  output,
  cache = defaultCache(),
  installed,
}: BuildOptions): Promise<Images> {
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new Error("images are built on Linux on x64: programs of that platform go into them");
  requirePrograms("building images", "git", "tar", "dpkg-deb");
  const work = await mkdtemp(join(tmpdir(), "keywright image "));
  try {
    await exportSource(source, work);
    await installPackages(work, installed);
    await buildSource(work);
    const lock = await readLock(join(work, "image", "packages.lock"));
    const contents = [
      [...systemEntries(), ...(await debianEntries(lock, cache))],
      await nodeEntries(work),
      await moduleEntries(work),
      [...(await programEntries(work)), await sbomEntry(work, lock)],
    ];
    const layers = await Promise.all(contents.map(layerOf));
    const written = IMAGE_NAMES.map(
      async (name) => [name, await writeLayout(await emptied(join(output, name)), SETTINGS[name], layers)] as const,
    );
    const images = Object.fromEntries(await Promise.all(written)) as Images;
    await copyFile(join(work, COMPOSE_FILE), join(output, COMPOSE_FILE));
    return images;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function emptied(folder: string): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  return folder;
}

function labelsOf(name: ImageName): Record<string, string> {
  return { "org.opencontainers.image.title": `keywright-${name}`, "org.opencontainers.image.licenses": "MIT" };
}

/** Digests and sizes as committed in image/digests.json. */
export type Digests = Readonly<Record<ImageName, { digest: string; bytes: number }>>;

export async function readDigests(source: string): Promise<Digests | undefined> {
  const file = join(source, "image", "digests.json");
  return existsSync(file) ? (JSON.parse(await readFile(file, "utf8")) as Digests) : undefined;
}

export async function writeDigests(source: string, images: Images): Promise<void> {
  await writeFile(join(source, "image", "digests.json"), `${JSON.stringify(images, null, 2)}\n`);
}
