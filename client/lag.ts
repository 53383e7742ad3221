/** Reads of the chain right after a change: nodes behind one address do not see each block at the same time. */

/** How long a wallet's node may lag behind the chain. */
export const LAG_MS = 20_000;
const POLL_MS = 500;

/** Reads until what it reads is enough, for a while. Gives what was read last. */
export async function readUntil<T>(
  read: () => Promise<T>,
  isEnough: (found: T) => boolean,
  withinMs: number,
): Promise<T> {
  const until = Date.now() + withinMs;
  for (;;) {
    const found = await read();
    if (isEnough(found) || Date.now() >= until) return found;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
