/** A receiver of webhooks on this machine that answers as each test says. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { eventually } from "./chainBed";

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly id: string;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

export interface Receiver {
  readonly url: string;
  readonly received: Received[];
  /** What it does with a request; by default it answers 204. */
  answer(how: (response: ServerResponse, message: Received) => void): void;
  /** Waits for a message of this type, at least two rounds of whatever looks for it. */
  next(type: string): Promise<Received>;
  stop(): Promise<void>;
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  let answer = (response: ServerResponse): unknown => response.writeHead(204).end();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      const { type, data } = (body === "" ? {} : JSON.parse(body)) as Pick<Received, "type" | "data">;
      const { headers, url: path = "" } = request;
      const message = { path, headers, body, id: String(headers["webhook-id"]), type, data };
      received.push(message);
      (answer as (response: ServerResponse, message: Received) => unknown)(response, message);
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answer: (how) => void (answer = how as typeof answer),
    next: async (type) => {
      await eventually(`a message ${type} arrives`, async () => received.some((one) => one.type === type), 30_000);
      return received.find((one) => one.type === type) as Received;
    },
    stop: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  };
}
