/** Ids of a history: random as the real ones are, and the same whenever the history runs again. */
import crypto from "node:crypto";
import { seeded } from "../counts";

const REAL = { randomBytes: crypto.randomBytes, randomUUID: crypto.randomUUID };

/** Calls `work` with ids from the seed in place of random ones. */
export async function withIdsOf<T>(seed: number, work: () => Promise<T>): Promise<T> {
  const next = seeded(seed);
  const randomBytes = (size: number): Buffer => Buffer.from(Array.from({ length: size }, () => 256 * next()));
  const randomUUID = (): string =>
    randomBytes(16)
      .toString("hex")
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  Object.assign(crypto, { randomBytes, randomUUID });
  try {
    return await work();
  } finally {
    Object.assign(crypto, REAL);
  }
}
