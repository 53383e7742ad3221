/** Ids and chances of a history: random as the real ones are, and the same whenever the history runs again. */
import crypto from "node:crypto";
import { seeded } from "../counts";

const REAL = { randomBytes: crypto.randomBytes, randomUUID: crypto.randomUUID };
const { random } = Math;

/** Calls `work` with ids and chances from the seed in place of random ones. */
export async function withIdsOf<T>(seed: number, work: () => Promise<T>): Promise<T> {
  const next = seeded(seed);
  const randomBytes = (size: number): Buffer => {
    const bytes = Buffer.allocUnsafe(size);
    for (let at = 0; at < size; at++) bytes[at] = 256 * next();
    return bytes;
  };
  const randomUUID = (): string => {
    const hex = randomBytes(16).toString("hex");
    return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
  };
  Object.assign(crypto, { randomBytes, randomUUID });
  Math.random = seeded(seed + 1);
  try {
    return await work();
  } finally {
    Object.assign(crypto, REAL);
    Math.random = random;
  }
}
