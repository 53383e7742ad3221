/** Servers that attacking and honest actions fetch from. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parentPort, Worker, type MessagePort } from "node:worker_threads";
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

/** Serves on a free port until its thread ends; the port is its first message. */
function serve(port: MessagePort): void {
  const server = createServer((request, response) => {
    response.on("error", () => undefined);
    request.on("error", () => undefined);
    request.resume().on("end", () => (ANSWERS[request.url ?? ""] ?? ANSWERS["/10-mib"])?.(response));
  });
  server.on("connection", (socket) => socket.on("error", () => undefined));
  server.listen(0, "127.0.0.1", () => port.postMessage((server.address() as AddressInfo).port));
}

if (parentPort !== null) serve(parentPort);

/**
 * Starts servers on a thread of their own, since answering attackers must not delay what is measured.
 * @returns their host and port, and what ends them
 */
export async function startServers(): Promise<{ readonly at: string; close(): Promise<unknown> }> {
  const thread = new Worker(__filename);
  const [port] = (await once(thread, "message")) as [number];
  return { at: `localhost:${port}`, close: () => thread.terminate() };
}
