/** Servers that attacking and honest actions fetch from. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { MIB } from "../../../protocol/limits";

/** Above 256 KiB an answer needs its share of the memory of answers. */
const BEFORE_PAUSE = Buffer.alloc(300 * 1_024);
const LARGE = Buffer.alloc(10 * MIB);
const PIECES = Buffer.from("1\r\ny\r\n".repeat(10_000));

const ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "/small": (response) => response.end("small"),
  "/1-mib": (response) => response.end(LARGE.subarray(0, MIB)),
  "/10-mib": (response) => response.end(LARGE),
  /** Begins an answer of 10 MiB and stops. */
  "/slow": (response) => {
    response.writeHead(200, { "content-length": String(LARGE.length) });
    response.write(BEFORE_PAUSE);
  },
  "/silent": () => undefined,
  "/pieces": ({ socket }) => {
    socket?.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    const more = (): void => {
      while (socket?.writable === true && socket.write(PIECES));
    };
    socket?.on("drain", more);
    more();
  },
};

export async function startServers(): Promise<{ readonly at: string; close(): void }> {
  const server: Server = createServer((request, response) => {
    response.on("error", () => undefined);
    request.on("error", () => undefined);
    request.resume().on("end", () => (ANSWERS[request.url ?? ""] ?? ANSWERS["/10-mib"])?.(response));
  });
  server.on("connection", (socket) => socket.on("error", () => undefined));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { at: `localhost:${(server.address() as AddressInfo).port}`, close };
}
