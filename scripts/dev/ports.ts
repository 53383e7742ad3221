import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Below the systems' ephemeral range: an outgoing connection could take a port between this check and its use. */
const [FIRST_PORT, LAST_PORT] = [15_000, 32_000] as const;
const TRIES = 50;
/** From a place of each process's own upwards: ports found soon after each other are not yet used. */
let next = randomInt(FIRST_PORT, LAST_PORT);

/** A port that is free at the moment. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const candidate = next;
    next = next + 1 < LAST_PORT ? next + 1 : FIRST_PORT;
    const port = await tryListen(candidate).catch(() => undefined);
    if (port !== undefined) return port;
  }
  return tryListen(0);
}

/** @throws an error that names the taken port and how to change it. */
export async function requireFree(port: number, what: string, variable: string): Promise<number> {
  try {
    return await tryListen(port);
  } catch {
    throw new Error(
      `Port ${port} (${what}) is taken. Stop whatever listens there, or choose another port with ${variable}=<port>.`,
    );
  }
}

function tryListen(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      const bound = typeof address === "object" && address !== null ? address.port : port;
      server.close(() => resolve(bound));
    });
  });
}
