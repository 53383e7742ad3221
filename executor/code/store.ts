/**
 * Code by CID on disk, one file per CID. Only authorised runs store code, so unauthenticated callers cannot fill the
 * disk. When it is full, the account that stores most loses its least recently used code, so that a run that turns out
 * to be free does not evict code of other accounts. Files are not trusted: the reader recomputes the CID.
 */
import { randomBytes } from "node:crypto";
import { mkdir, readFile, readdir, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseCid } from "../../protocol/cid";
import type { Cid } from "../../protocol/ids";
import { MIB } from "../../protocol/limits";

interface Kept {
  readonly bytes: number;
  /** The account that stored it; after a restart, the first one that used it. */
  readonly account: string;
}

/** Of code that is still to be written: where the disk is slower than runs, copies are lost, not memory. */
const MAX_PENDING_BYTES = 64 * MIB;
/** The account of files that were here before a restart and have not been used since. */
const UNKNOWN = "";

/** What this process lacks is no damage of a file. */
const OURS: ReadonlySet<string | undefined> = new Set(["EMFILE", "ENFILE", "ENOMEM"]);

export class CodeStore {
  /** In order of use, least recently used first. */
  readonly #kept = new Map<Cid, Kept>();
  readonly #bytesOf = new Map<string, number>();
  #totalBytes = 0;
  /** Code that is still to be written; read from here until the file exists. */
  readonly #pending = new Map<Cid, Buffer>();
  #pendingBytes = 0;
  /** Files are written one after the other, so that the room of a write is known before it starts. */
  #lastWrite: Promise<unknown> = Promise.resolve();
  readonly #folder: string;
  readonly #maxBytes: number;

  private constructor(folder: string, maxBytes: number) {
    this.#folder = folder;
    this.#maxBytes = maxBytes;
  }

  static async open(folder: string, maxBytes: number): Promise<CodeStore> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const store = new CodeStore(folder, maxBytes);
    await store.#index();
    return store;
  }

  has(cid: Cid): boolean {
    return this.#kept.has(cid);
  }

  /** How many bytes are kept under this CID; undefined when there are none. */
  bytesOf(cid: Cid): number | undefined {
    return this.#pending.get(cid)?.length ?? this.#kept.get(cid)?.bytes;
  }

  /** The code was used without being read: it counts as used lately. */
  use(cid: Cid, account: string): void {
    const kept = this.#kept.get(cid);
    if (kept !== undefined) this.#touch(cid, kept.bytes, account);
  }

  /** The bytes kept under this CID, unverified; undefined when there are none. Nobody else has them. */
  async read(cid: Cid, account: string): Promise<Buffer | undefined> {
    const pending = this.#pending.get(cid);
    // Its owner frees it when it is written.
    if (pending !== undefined) return Buffer.from(pending);
    if (!this.#kept.has(cid)) return undefined;
    try {
      const bytes = await readFile(this.#file(cid));
      this.#touch(cid, bytes.length, account);
      return bytes;
    } catch (error) {
      // What stayed on the disk would not be counted before a restart.
      if (!OURS.has((error as NodeJS.ErrnoException).code)) await this.drop(cid).catch(() => undefined);
      return undefined;
    }
  }

  /** Stores code under its CID. A disk failure loses the copy but does not fail the run. */
  async keep(cid: Cid, code: Buffer, account: string): Promise<void> {
    if (this.#kept.has(cid) || this.#pending.has(cid) || code.length > this.#maxBytes) return;
    if (this.#pendingBytes + code.length > MAX_PENDING_BYTES) return;
    this.#pending.set(cid, code);
    this.#pendingBytes += code.length;
    const write = this.#lastWrite
      .then(() => this.#write(cid, code, account))
      .finally(() => {
        this.#pending.delete(cid);
        this.#pendingBytes -= code.length;
      });
    this.#lastWrite = write.catch(() => undefined);
    await write;
  }

  /** Makes room first, so that the folder never holds more than it may, a file being written included. */
  async #write(cid: Cid, code: Buffer, account: string): Promise<void> {
    this.#add(account, code.length);
    const temporary = join(this.#folder, `.${randomBytes(8).toString("hex")}`);
    try {
      await this.#evict();
      if (this.#totalBytes > this.#maxBytes) return;
      await writeFile(temporary, code, { mode: 0o600 });
      await rename(temporary, this.#file(cid));
      this.#record(cid, { bytes: code.length, account });
    } finally {
      this.#add(account, -code.length);
      await rm(temporary, { force: true });
    }
  }

  async drop(cid: Cid): Promise<void> {
    this.#forget(cid);
    await rm(this.#file(cid), { force: true });
  }

  async #index(): Promise<void> {
    const names = await readdir(this.#folder);
    const files = await Promise.all(
      names.map(async (name) => ({ name, cid: parseCid(name), facts: await stat(join(this.#folder, name)) })),
    );
    const leftovers = files.filter(({ name, cid }) => cid === undefined || cid !== name);
    await Promise.all(leftovers.map(({ name }) => rm(join(this.#folder, name), { force: true, recursive: true })));
    files.sort((a, b) => a.facts.mtimeMs - b.facts.mtimeMs);
    for (const { name, cid, facts } of files)
      if (cid !== undefined && cid === name) this.#record(cid, { bytes: facts.size, account: UNKNOWN });
    await this.#evict();
  }

  /** The file's modification time records the last use, so that the order survives a restart. */
  #touch(cid: Cid, bytes: number, user: string): void {
    const account = this.#kept.get(cid)?.account ?? UNKNOWN;
    this.#record(cid, { bytes, account: account === UNKNOWN ? user : account });
    const now = new Date();
    utimes(this.#file(cid), now, now).catch(() => undefined);
  }

  #record(cid: Cid, kept: Kept): void {
    this.#forget(cid);
    this.#kept.set(cid, kept);
    this.#add(kept.account, kept.bytes);
  }

  #forget(cid: Cid): void {
    const kept = this.#kept.get(cid);
    if (kept === undefined) return;
    this.#kept.delete(cid);
    this.#add(kept.account, -kept.bytes);
  }

  #add(account: string, bytes: number): void {
    this.#totalBytes += bytes;
    const now = (this.#bytesOf.get(account) ?? 0) + bytes;
    if (now === 0) this.#bytesOf.delete(account);
    else this.#bytesOf.set(account, now);
  }

  async #evict(): Promise<void> {
    while (this.#totalBytes > this.#maxBytes) {
      const cid = this.#oldestOfLargest();
      if (cid === undefined) return;
      await this.drop(cid);
    }
  }

  #oldestOfLargest(): Cid | undefined {
    let most = 0;
    for (const bytes of this.#bytesOf.values()) most = Math.max(most, bytes);
    for (const [cid, { account }] of this.#kept) if (this.#bytesOf.get(account) === most) return cid;
    return undefined;
  }

  #file(cid: Cid): string {
    return join(this.#folder, cid);
  }
}
