/** Ends connections whose clients do not read: what they leave unread fills the memory of this machine. */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { clientGroup } from "./clientGroup";
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
    const reader = { socket, group: "", answers: new Set<ServerResponse>(), since: performance.now() };
    readers.set(socket, reader);
    socket.once("close", () => readers.delete(socket));
    return reader;
  };
  server.on("request", (request, response) => {
    const reader = readerOf(request.socket);
    reader.group = clientGroup(clientOf(request) ?? "");
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
 * address that leaves most are ended, first who has left most for longest.
 */
function endHeaviest(readers: readonly Reader[], mostBytes: number): void {
  const now = performance.now();
  const unread: Unread[] = readers.map((reader) => ({ reader, bytes: unreadOf(reader) }));
  const ofGroup = new Map<string, number>();
  for (const { reader, bytes } of unread) {
    if (bytes === 0) reader.since = now;
    ofGroup.set(reader.group, (ofGroup.get(reader.group) ?? 0) + bytes);
  }
  let excess = unread.reduce((sum, { bytes }) => sum + bytes, 0) - mostBytes;
  if (excess <= 0) return;
  const groupOf = ({ reader }: Unread): number => ofGroup.get(reader.group) ?? 0;
  const weightOf = ({ reader, bytes }: Unread): number => bytes * (now - reader.since);
  for (const { reader, bytes } of unread.sort((a, b) => groupOf(b) - groupOf(a) || weightOf(b) - weightOf(a))) {
    if (excess <= 0) return;
    excess -= bytes;
    reader.socket.destroy();
  }
}
