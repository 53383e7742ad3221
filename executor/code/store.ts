/**
 * Code by CID on disk, one file per CID, least recently used evicted first. Only authorised runs store code, so
 * strangers cannot store bytes here. Files are not trusted: the reader recomputes the CID.
 */
import { randomBytes } from "node:crypto";
import { mkdir, readFile, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseCid } from "../../protocol/cid";
import type { Cid } from "../../protocol/ids";

export class CodeStore {
  /** Sizes in order of use, least recently used first. */
  readonly #sizes = new Map<Cid, number>();
  #totalBytes = 0;
  /** Writes in progress; read from here until the file exists. */
  readonly #pending = new Map<Cid, Buffer>();

  private constructor(
    private readonly folder: string,
    private readonly maxBytes: number,
  ) {}

  static async open(folder: string, maxBytes: number): Promise<CodeStore> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const store = new CodeStore(folder, maxBytes);
    await store.#index();
    return store;
  }

  has(cid: Cid): boolean {
    return this.#sizes.has(cid);
  }

  /** The bytes kept under this CID, unverified; undefined when there are none. */
  async read(cid: Cid): Promise<Buffer | undefined> {
    const pending = this.#pending.get(cid);
    if (pending !== undefined || !this.#sizes.has(cid)) return pending;
    try {
      const bytes = await readFile(this.#file(cid));
      this.#touch(cid, bytes.length);
      return bytes;
    } catch {
      this.#forget(cid);
      return undefined;
    }
  }

  /** Stores code under its CID. A disk failure loses the copy but does not fail the run. */
  async keep(cid: Cid, code: Buffer): Promise<void> {
    if (this.#sizes.has(cid) || this.#pending.has(cid) || code.length > this.maxBytes) return;
    this.#pending.set(cid, code);
    const temporary = join(this.folder, `.${randomBytes(8).toString("hex")}`);
    try {
      await writeFile(temporary, code, { mode: 0o600 });
      await rename(temporary, this.#file(cid));
      this.#record(cid, code.length);
    } finally {
      this.#pending.delete(cid);
      await rm(temporary, { force: true });
    }
    await this.#evict();
  }

  async drop(cid: Cid): Promise<void> {
    this.#forget(cid);
    await rm(this.#file(cid), { force: true });
  }

  async #index(): Promise<void> {
    const names = await readdir(this.folder);
    const files = await Promise.all(
      names.map(async (name) => ({ name, cid: parseCid(name), facts: await stat(join(this.folder, name)) })),
    );
    const leftovers = files.filter(({ name, cid }) => cid === undefined || cid !== name);
    await Promise.all(leftovers.map(({ name }) => rm(join(this.folder, name), { force: true, recursive: true })));
    files.sort((a, b) => a.facts.mtimeMs - b.facts.mtimeMs);
    for (const { name, cid, facts } of files) if (cid !== undefined && cid === name) this.#record(cid, facts.size);
    await this.#evict();
  }

  /** The file's modification time records the last use, so that the order survives a restart. */
  #touch(cid: Cid, bytes: number): void {
    this.#record(cid, bytes);
    const now = new Date();
    utimes(this.#file(cid), now, now).catch(() => undefined);
  }

  #record(cid: Cid, bytes: number): void {
    this.#forget(cid);
    this.#sizes.set(cid, bytes);
    this.#totalBytes += bytes;
  }

  #forget(cid: Cid): void {
    this.#totalBytes -= this.#sizes.get(cid) ?? 0;
    this.#sizes.delete(cid);
  }

  async #evict(): Promise<void> {
    for (const cid of this.#sizes.keys()) {
      if (this.#totalBytes <= this.maxBytes) return;
      await this.drop(cid);
    }
  }

  #file(cid: Cid): string {
    return join(this.folder, cid);
  }
}
