import { createServer } from "node:net";

/** A port nobody listens on at this moment. */
export function freePort(): Promise<number> {
  return tryListen(0);
}

/** @throws a sentence that says which port is taken and how to move it. */
export async function requireFree(port: number, what: string, variable: string): Promise<number> {
  try {
    return await tryListen(port);
  } catch {
    throw new Error(`Port ${port} (${what}) is taken. Stop whatever listens there, or choose another port with ${variable}=<port>.`);
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
