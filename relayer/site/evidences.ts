/**
 * Reads the folder where the TLS ingress puts evidence of its certificate. Read-only: regular files directly inside it,
 * with plain names and bounded size; symbolic links are not followed.
 */
import { constants } from "node:fs";
import { lstat, open, readdir, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { KeywrightError } from "../../protocol/errors";

export const EVIDENCE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
export const MAX_EVIDENCE_BYTES = 1024 * 1024;
const MAX_LISTED = 200;

const CONTENT_TYPES: readonly (readonly [suffix: string, type: string])[] = [
  [".pem", "application/x-pem-file"],
  [".json", "application/json"],
  [".txt", "text/plain; charset=utf-8"],
];

export interface EvidenceFile {
  readonly contentType: string;
  readonly content: Buffer;
}

export class EvidenceFolder {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Names in alphabetical order, at most 200. Throws `attestation_unavailable` when the folder cannot be read. */
  async list(): Promise<string[]> {
    const names = await readdir(this.#directory).catch(unreadable);
    const listed: string[] = [];
    for (const name of names.filter((candidate) => EVIDENCE_NAME.test(candidate)).sort()) {
      if (listed.length < MAX_LISTED && (await this.#holds(name))) listed.push(name);
    }
    return listed;
  }

  /** Throws `evidence_not_found` for anything that is not a regular file of this folder. */
  async read(name: string): Promise<EvidenceFile> {
    if (!EVIDENCE_NAME.test(name)) throw notFound(name);
    const file = await this.#open(name);
    try {
      return { contentType: contentTypeOf(name), content: await contentOf(file, name) };
    } finally {
      await file.close();
    }
  }

  async #holds(name: string): Promise<boolean> {
    const entry = await lstat(join(this.#directory, name)).catch(() => undefined);
    return entry?.isFile() === true && entry.size <= MAX_EVIDENCE_BYTES;
  }

  async #open(name: string): Promise<FileHandle> {
    // Without NONBLOCK, opening a named pipe would block indefinitely; without NOFOLLOW a link could lead out of the
    // folder.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    return open(join(this.#directory, name), flags).catch((error: unknown) => {
      throw notFound(name, error);
    });
  }
}

async function contentOf(file: FileHandle, name: string): Promise<Buffer> {
  const entry = await file.stat();
  if (!entry.isFile() || entry.size > MAX_EVIDENCE_BYTES) throw notFound(name);
  // One byte more than its size detects a file that grows while it is read: never serve part of it.
  const buffer = Buffer.alloc(entry.size + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
    length += bytesRead;
    if (length > entry.size) throw notFound(name);
    if (bytesRead === 0) return buffer.subarray(0, length);
  }
}

function contentTypeOf(name: string): string {
  return CONTENT_TYPES.find(([suffix]) => name.endsWith(suffix))?.[1] ?? "application/octet-stream";
}

function notFound(name: string, cause?: unknown): KeywrightError {
  return new KeywrightError(
    "evidence_not_found",
    `there is no evidence file ${name}; /evidences/ lists those there are.`,
    {},
    { cause },
  );
}

function unreadable(cause: unknown): never {
  throw new KeywrightError("attestation_unavailable", "the evidence files are not there at the moment.", undefined, {
    cause,
    retryAfterSeconds: 30,
  });
}
