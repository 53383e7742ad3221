/** Ends connections whose clients do not read: what they leave unread fills the memory of this machine. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { clientGroup, clientNetwork } from "./clientGroup";
import { MIB } from "./limits";

export interface UnreadLimits {
  /** In milliseconds: the longest that a client takes nothing of an answer. Requests may be under way for longer. */
  readonly withinMs: number;
  /** Most that all clients together leave unread; default 64 MiB. */
  readonly bytes?: number;
  /** The address of who has sent a request; default the connection's. */
  readonly clientOf?: (request: IncomingMessage) => string | undefined;
}

/** Between two looks at what all of them leave unread. */
const LOOK_MS = 250;

interface Reader {
  readonly socket: Socket;
  /** Of the client of the last request: a proxy's connections serve one after the other. */
  group: string;
  network: string;
  /** The connection's answers that are not sent completely: only the first of them has the socket. */
  readonly answers: Set<ServerResponse>;
  /** When it was last seen to have read everything. */
  since: number;
}

export function endUnreadAnswers(server: Server, limits: UnreadLimits): void {
  const { clientOf = ({ socket }: IncomingMessage) => socket.remoteAddress } = limits;
  const readers = new Map<Socket, Reader>();
  const readerOf = (socket: Socket): Reader => {
    const known = readers.get(socket);
    if (known !== undefined) return known;
    const reader = { socket, group: "", network: "", answers: new Set<ServerResponse>(), since: performance.now() };
    readers.set(socket, reader);
    socket.once("close", () => readers.delete(socket));
    return reader;
  };
  server.on("request", (request, response) => {
    const reader = readerOf(request.socket);
    const client = clientOf(request) ?? "";
    Object.assign(reader, { group: clientGroup(client), network: clientNetwork(client) });
    reader.answers.add(response);
    response.once("close", () => reader.answers.delete(response));
  });
  // Node's time-out knows what the system has taken of a long answer.
  server.setTimeout(limits.withinMs, (socket: Socket) => {
    const waitsForUs = (readers.get(socket)?.answers.size ?? 0) > 0 && socket.writableLength === 0;
    if (!waitsForUs) socket.destroy();
  });
  const looks = setInterval(() => endHeaviest([...readers.values()], limits.bytes ?? 64 * MIB), LOOK_MS).unref();
  server.once("close", () => clearInterval(looks));
}

interface Unread {
  readonly reader: Reader;
  readonly bytes: number;
}

function unreadOf({ socket, answers }: Reader): number {
  const behind = [...answers].filter((answer) => answer.socket === null);
  return behind.reduce((sum, answer) => sum + answer.writableLength, socket.writableLength);
}

/**
 * A few bytes now and then keep each reader below its own limit. Where they leave too much unread in sum, those of the
 * network that leaves most are ended, of its addresses and then of their connections first which has left most for
 * longest.
 */
function endHeaviest(readers: readonly Reader[], mostBytes: number): void {
  const now = performance.now();
  const unread: Unread[] = readers.map((reader) => ({ reader, bytes: unreadOf(reader) }));
  const sums = new Map<string, number>();
  for (const { reader, bytes } of unread) {
    if (bytes === 0) reader.since = now;
    for (const name of [reader.group, reader.network]) sums.set(name, (sums.get(name) ?? 0) + bytes);
  }
  let excess = unread.reduce((sum, { bytes }) => sum + bytes, 0) - mostBytes;
  if (excess <= 0) return;
  const sumOf = (name: string): number => sums.get(name) ?? 0;
  const heaviestFirst = (a: Unread, b: Unread): number =>
    sumOf(b.reader.network) - sumOf(a.reader.network) ||
    sumOf(b.reader.group) - sumOf(a.reader.group) ||
    b.bytes * (now - b.reader.since) - a.bytes * (now - a.reader.since);
  for (const { reader, bytes } of unread.sort(heaviestFirst)) {
    if (excess <= 0) return;
    excess -= bytes;
    reader.socket.destroy();
  }
}
