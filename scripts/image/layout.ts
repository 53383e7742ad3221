/**
 * An OCI image layout: one folder that the usual tools read (skopeo, umoci, buildah, docker load after a copy). Its
 * layers depend only on names and contents: sorted, owned by root, without times, compressed by the pinned Node.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { pack } from "tar-stream";

const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip";
const CREATED = "1970-01-01T00:00:00Z";

export interface ImageSettings {
  readonly user: string;
  readonly env: readonly string[];
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly ports: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

export interface WrittenImage {
  /** The digest by which a compose file names the image. */
  readonly digest: string;
  /** Of all layers, compressed. */
  readonly bytes: number;
}

export async function writeLayout(
  folder: string,
  settings: ImageSettings,
  layers: readonly Layer[],
): Promise<WrittenImage> {
  await mkdir(join(folder, "blobs", "sha256"), { recursive: true });
  const write = async (bytes: Buffer): Promise<{ digest: string; size: number }> => {
    const digest = digestOf(bytes);
    await writeFile(join(folder, "blobs", "sha256", digest.slice("sha256:".length)), bytes);
    return { digest, size: bytes.length };
  };
  const config = await write(json(configOf(settings, layers)));
  const written = [];
  for (const { bytes } of layers) written.push({ mediaType: LAYER_TYPE, ...(await write(bytes)) });
  const manifest = await write(
    json({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: { mediaType: CONFIG_TYPE, ...config },
      layers: written,
    }),
  );
  const annotations = { "org.opencontainers.image.ref.name": "latest" };
  await writeFile(
    join(folder, "index.json"),
    json({ schemaVersion: 2, manifests: [{ mediaType: MANIFEST_TYPE, ...manifest, annotations }] }),
  );
  await writeFile(join(folder, "oci-layout"), json({ imageLayoutVersion: "1.0.0" }));
  return { digest: manifest.digest, bytes: layers.reduce((sum, { bytes }) => sum + bytes.length, 0) };
}

function configOf({ user, env, entrypoint, cmd, ports, labels }: ImageSettings, layers: readonly Layer[]): object {
  return {
    created: CREATED,
    architecture: "amd64",
    os: "linux",
    config: {
      User: user,
      Env: env,
      Entrypoint: entrypoint,
      Cmd: cmd,
      WorkingDir: "/app",
      Labels: labels,
      ...(ports.length === 0 ? {} : { ExposedPorts: Object.fromEntries(ports.map((port) => [`${port}/tcp`, {}])) }),
    },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created: CREATED, created_by: "npm run image" })),
  };
}

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));

/** A file, a link, or an empty folder; the path has no slash at its start. */
export type Entry =
  | { readonly path: string; readonly content: Buffer; readonly isExecutable?: boolean }
  | { readonly path: string; readonly link: string }
  | { readonly path: string; readonly folderMode: number; readonly owner?: number };

export interface Layer {
  /** gzip of the tar. */
  readonly bytes: Buffer;
  readonly digest: string;
  /** Digest of the tar itself. */
  readonly diffId: string;
}

const EPOCH = new Date(0);
/** Half the time of the best one, for a hundredth more bytes. */
const LEVEL = 6;
export const digestOf = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

export async function layerOf(entries: readonly Entry[]): Promise<Layer> {
  const tar = await tarOf(withFolders(entries));
  const bytes = await promisify(gzip)(tar, { level: LEVEL });
  return { bytes, digest: digestOf(bytes), diffId: digestOf(tar) };
}

/** Adds each parent folder once; sorts all by bytes. */
function withFolders(entries: readonly Entry[]): Entry[] {
  const all = new Map<string, Entry>();
  for (const { path } of entries) {
    for (let folder = posix.dirname(path); folder !== "."; folder = posix.dirname(folder))
      all.set(folder, { path: folder, folderMode: 0o755 });
  }
  for (const entry of entries) {
    const there = all.get(entry.path);
    if (there !== undefined && !("folderMode" in there))
      throw new Error(`two files of the image have the path ${entry.path}`);
    all.set(entry.path, entry);
  }
  return [...all.values()].sort((one, other) => Buffer.compare(Buffer.from(one.path), Buffer.from(other.path)));
}

async function tarOf(entries: readonly Entry[]): Promise<Buffer> {
  const archive = pack();
  const chunks: Buffer[] = [];
  const read = (async () => {
    for await (const chunk of archive) chunks.push(chunk as Buffer);
  })();
  for (const entry of entries) {
    const header = { name: entry.path, mtime: EPOCH, uid: 0, gid: 0, uname: "", gname: "" };
    if ("link" in entry) archive.entry({ ...header, type: "symlink", linkname: entry.link, mode: 0o777 });
    else if ("folderMode" in entry)
      archive.entry({
        ...header,
        type: "directory",
        mode: entry.folderMode,
        uid: entry.owner ?? 0,
        gid: entry.owner ?? 0,
      });
    else archive.entry({ ...header, type: "file", mode: entry.isExecutable === true ? 0o755 : 0o644 }, entry.content);
  }
  archive.finalize();
  await read;
  return Buffer.concat(chunks);
}
