/** A proxy in front of the chain's node that counts the services' calls. */
import { createServer, type Server } from "node:http";
import { Agent, request } from "undici";
import { freePort } from "../../dev/ports";

export class CallCounter {
  calls = 0;
  readonly #agent = new Agent({ connections: 64 });
  #server: Server | undefined;
  readonly #port: number;

  private constructor(port: number) {
    this.#port = port;
  }

  static async make(): Promise<CallCounter> {
    return new CallCounter(await freePort());
  }

  /** Starts the proxy and returns its URL for the services. */
  inFrontOf(rpcUrl: string): string {
    this.#server = createServer(async (incoming, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      this.calls += callsIn(body);
      const { statusCode, body: answer } = await request(rpcUrl, {
        method: "POST",
        dispatcher: this.#agent,
        headers: { "content-type": "application/json" },
        body,
      });
      response
        .writeHead(statusCode, { "content-type": "application/json" })
        .end(Buffer.from(await answer.arrayBuffer()));
    });
    this.#server.listen(this.#port, "127.0.0.1");
    return `http://127.0.0.1:${this.#port}`;
  }

  stop(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
    void this.#agent.destroy();
  }
}

function callsIn(body: Buffer): number {
  const parsed: unknown = JSON.parse(body.toString("utf8"));
  return Array.isArray(parsed) ? parsed.length : 1;
}
