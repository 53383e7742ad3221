/** Ends connections whose clients do not read: what they leave unread fills the memory of this machine. */
import type { Server } from "node:http";
import type { Socket } from "node:net";

/** In milliseconds: the longest that a client takes nothing of an answer. Requests may be under way for longer. */
export function endUnreadAnswers(server: Server, withinMs: number): void {
  const underWay = new WeakMap<Socket, number>();
  const count = (socket: Socket, by: number): void => void underWay.set(socket, (underWay.get(socket) ?? 0) + by);
  server.on("request", ({ socket }, response) => {
    count(socket, 1);
    response.once("close", () => count(socket, -1));
  });
  // Node's time-out knows what the system has taken of a long answer.
  server.setTimeout(withinMs, (socket: Socket) => {
    const waitsForUs = (underWay.get(socket) ?? 0) > 0 && socket.writableLength === 0;
    if (!waitsForUs) socket.destroy();
  });
}
