/**
 * How relayers on one machine know that one of them is dead without waiting for its lease: each listens on a socket whose name is its instance's. The kernel takes the name back when the
 * process ends, however it ends. Names are valid within one boot of one machine and one network namespace; where either differs, or there are no such names, the lease decides.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";

/** Where names of sockets mean the same; undefined where there are none. */
export function placeHere(): string | undefined {
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readlinkSync("/proc/self/ns/net")}`;
  } catch {
    return undefined;
  }
}

/** An abstract name: a NUL in front, no file. */
const nameOf = (instanceId: string): string => `\0keywright-relayer-${instanceId}`;

/** From now on `isDead` says false of this instance. The answer ends that. */
export function beHere(instanceId: string): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const server: Server = createServer((socket) => socket.destroy());
    server.once("error", reject);
    server.listen({ path: nameOf(instanceId) }, () => resolve(() => void server.close()));
    server.unref();
  });
}

/** Certain only when true: nobody has the name any more. */
export function isDead(instanceId: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path: nameOf(instanceId) });
    const end = (dead: boolean): void => {
      socket.destroy();
      resolve(dead);
    };
    socket.once("connect", () => end(false)).once("error", (error: NodeJS.ErrnoException) => end(error.code === "ECONNREFUSED"));
  });
}
