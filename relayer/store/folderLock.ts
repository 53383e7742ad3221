/**
 * One process per folder: the embedded database has no protection of its own, and two writers would destroy it. The
 * holder listens on a socket inside the folder; the kernel closes it when the process dies, so a stale socket file is
 * recognised by the refused connection.
 */
import { mkdir, unlink } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";

/**
 * Locks the folder, creating it if missing; throws if another process holds it. Returns the function that releases the
 * lock.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, "in-use.sock");
  const server = (await listen(path)) ?? (await listenAfter(path));
  if (server === undefined)
    throw new Error(`The folder ${folder} is in use by another process: stop it, or choose another DATA_DIR.`);
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}

/** Retries after removing the socket of a dead holder. */
async function listenAfter(path: string): Promise<Server | undefined> {
  if (await answers(path)) return undefined;
  await unlink(path).catch(() => undefined);
  return listen(path);
}

function listen(path: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(undefined) : reject(error),
    );
    server.listen(path, () => resolve(server));
  });
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (answered: boolean) => (): void => {
      socket.destroy();
      resolve(answered);
    };
    socket.once("connect", end(true)).once("error", end(false));
  });
}
