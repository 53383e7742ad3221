/**
 * What has begun in the life of this process: each cause at most once. Nothing else of the keyholder survives a
 * restart, so causes from before its start are judged by their own time (`causes.ts`). Bounded in number: when a cause
 * has to be forgotten, no cause that is as old begins any more.
 */
import { hash } from "node:crypto";

const MAX_KNOWN = 500_000;

export class Once {
  /** By when they came to be, in ms since 1970. */
  readonly #begun = new Map<string, number>();
  readonly #most: number;
  #forgottenMs = -Infinity;

  constructor(most = MAX_KNOWN) {
    this.#most = most;
  }

  /** It has begun, or may have. */
  has(name: string, atMs: number): boolean {
    return atMs <= this.#forgottenMs || this.#begun.has(short(name));
  }

  /** False if it has begun before, or may have. */
  begin(name: string, atMs: number): boolean {
    if (this.has(name, atMs)) return false;
    this.#begun.set(short(name), atMs);
    if (this.#begun.size > this.#most) this.#forgetOldest();
    return true;
  }

  /** Nothing ran: it may begin again. */
  forget(name: string): void {
    this.#begun.delete(short(name));
  }

  #forgetOldest(): void {
    for (const [name, atMs] of this.#begun) {
      this.#begun.delete(name);
      this.#forgottenMs = Math.max(this.#forgottenMs, atMs);
      return;
    }
  }
}

const short = (name: string): string => hash("sha256", name, "base64url");
