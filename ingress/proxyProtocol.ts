/**
 * PROXY protocol, version 1 ("send-proxy" of HAProxy): a load balancer forwards TCP connections, so that TLS still ends
 * here, and sends the client's address in a line before the data. Connections without that line are closed: they do not
 * come from the load balancer.
 */
import type { Server as HttpsServer } from "node:https";
import { createServer, isIP, type Server, type Socket } from "node:net";

/** Maximum length of the line. */
const MAX_BYTES = 107;
const PATIENCE_MS = 5_000;
const LINE = /^PROXY (?:TCP4|TCP6) (\S+) \S+ \d{1,5} \d{1,5}$/;
/** A health check of the load balancer itself. */
const OWN_LINE = /^PROXY UNKNOWN( .*)?$/;

/** Client addresses by connection. */
export class ClientAddresses {
  readonly #clients = new Map<string, string>();

  /** The address sent by the load balancer, else the connection's remote address. */
  of(socket: Socket): string {
    return this.#clients.get(endOf(socket)) ?? socket.remoteAddress ?? "unknown";
  }

  remember(socket: Socket, client: string): void {
    const end = endOf(socket);
    this.#clients.set(end, client);
    socket.once("close", () => this.#clients.delete(end));
  }
}

/** Identifies a connection: a TLS socket hides the underlying socket, but has the same remote address and port. */
const endOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

/** Listens instead of `tls`, and passes each connection to it once its line is read. */
export function createProxyEndpoint(tls: HttpsServer, addresses: ClientAddresses): Server {
  const front = createServer((socket) => {
    const patience = setTimeout(() => socket.destroy(), PATIENCE_MS);
    socket.once("close", () => clearTimeout(patience));
    const give = (client: string | undefined): void => {
      clearTimeout(patience);
      if (client !== undefined) addresses.remember(socket, client);
      tls.emit("connection", socket);
    };
    socket.on("error", () => socket.destroy());
    readLine(socket, (line) => {
      const client = LINE.exec(line)?.[1];
      if (client !== undefined && isIP(client) !== 0) give(client);
      else if (OWN_LINE.test(line)) give(undefined);
      else socket.destroy();
    });
  });
  // Node counts a server's connections, and ends those that send too slowly, from when it listens.
  front.once("listening", () => tls.emit("listening"));
  return front;
}

/** Reads the line; data after it stays in the socket. */
function readLine(socket: Socket, take: (line: string) => void): void {
  let read = Buffer.alloc(0);
  const onReadable = (): void => {
    const chunk = socket.read() as Buffer | null;
    if (chunk === null) return;
    read = Buffer.concat([read, chunk]);
    const end = read.indexOf("\r\n");
    if (end < 0 && read.length <= MAX_BYTES) return;
    socket.off("readable", onReadable);
    if (end < 0 || end > MAX_BYTES) return void socket.destroy();
    socket.unshift(read.subarray(end + 2));
    take(read.toString("latin1", 0, end));
  };
  socket.on("readable", onReadable);
}
