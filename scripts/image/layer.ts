/**
 * A reproducible image layer that depends only on names and contents: sorted, owned by root, without times, compressed
 * by the pinned Node.
 */
import { createHash } from "node:crypto";
import { posix } from "node:path";
import { gzipSync } from "node:zlib";
import { pack } from "tar-stream";

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
const BEST = 9;
export const digestOf = (bytes: Buffer): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

export async function layerOf(entries: readonly Entry[]): Promise<Layer> {
  const tar = await tarOf(withFolders(entries));
  const bytes = gzipSync(tar, { level: BEST });
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
