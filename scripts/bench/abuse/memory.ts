/** Watches the memory of processes. */
import { memoryMiB } from "../processes";

/** The most that processes had while it watched. */
export class MemoryWatch<Name extends string> {
  readonly most: Record<Name, number>;
  readonly #roots: Readonly<Record<Name, () => number>>;
  readonly #timer: NodeJS.Timeout;

  constructor(roots: Readonly<Record<Name, () => number>>, everyMs = 500) {
    this.#roots = roots;
    this.most = this.now();
    this.#timer = setInterval(() => this.#look(), everyMs);
  }

  now(): Record<Name, number> {
    const named = Object.entries(this.#roots) as [Name, () => number][];
    return Object.fromEntries(named.map(([name, root]) => [name, memoryMiB(root())])) as Record<Name, number>;
  }

  stop(): Record<Name, number> {
    clearInterval(this.#timer);
    this.#look();
    return this.most;
  }

  #look(): void {
    for (const [name, mib] of Object.entries(this.now()) as [Name, number][])
      this.most[name] = Math.max(this.most[name], mib);
  }
}
