/** Ends connections whose clients do not read: what they leave unread fills the memory of this machine. */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { MIB } from "./limits";

export interface UnreadLimits {
  /** In milliseconds: the longest that a client takes nothing of an answer. Requests may be under way for longer. */
  readonly withinMs: number;
  /** Most that all clients together leave unread; default 64 MiB. */
  readonly bytes?: number;
}

/** Between two looks at what all of them leave unread. */
const LOOK_MS = 250;

export function endUnreadAnswers(server: Server, { withinMs, bytes = 64 * MIB }: UnreadLimits): void {
  const underWay = new WeakMap<Socket, number>();
  const count = (socket: Socket, by: number): void => void underWay.set(socket, (underWay.get(socket) ?? 0) + by);
  const unread = new Unread(bytes);
  server.on("request", ({ socket }, response) => {
    unread.watch(socket);
    count(socket, 1);
    response.once("close", () => count(socket, -1));
  });
  // Node's time-out knows what the system has taken of a long answer.
  server.setTimeout(withinMs, (socket: Socket) => {
    const waitsForUs = (underWay.get(socket) ?? 0) > 0 && socket.writableLength === 0;
    if (!waitsForUs) socket.destroy();
  });
  const looks = setInterval(() => unread.endHeaviest(), LOOK_MS).unref();
  server.once("close", () => clearInterval(looks));
}

/** What clients leave unread, in sum: a few bytes now and then keep each of them below its own limit. */
class Unread {
  /** With the moment at which each was last seen to have everything read. */
  readonly #sockets = new Map<Socket, number>();
  readonly #mostBytes: number;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  watch(socket: Socket): void {
    if (this.#sockets.has(socket)) return;
    this.#sockets.set(socket, performance.now());
    socket.once("close", () => this.#sockets.delete(socket));
  }

  /** Where it is too much in sum, ends those that have left most unread for longest. */
  endHeaviest(): void {
    const now = performance.now();
    for (const [socket] of this.#sockets) if (socket.writableLength === 0) this.#sockets.set(socket, now);
    let excess = [...this.#sockets.keys()].reduce((sum, socket) => sum + socket.writableLength, 0) - this.#mostBytes;
    if (excess <= 0) return;
    const weightOf = ([socket, since]: readonly [Socket, number]): number => socket.writableLength * (now - since);
    const heaviest = [...this.#sockets].sort((a, b) => weightOf(b) - weightOf(a));
    for (const [socket] of heaviest) {
      if (excess <= 0) return;
      excess -= socket.writableLength;
      socket.destroy();
    }
  }
}
