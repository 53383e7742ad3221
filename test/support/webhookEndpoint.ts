/** The endpoint of a double's webhooks: makes the route's call and answers with the route's status. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { KeywrightError } from "../../protocol/errors";
import type { Credits } from "../../relayer/credits";

export interface WebhookEndpoint {
  readonly url: string;
  /** Answers 503 to this many deliveries. */
  refuse(times: number): void;
  /** Deliveries that were answered with 200. */
  readonly accepted: number;
  /** Passes the events to these credits from now on. */
  serve(credits: Credits): void;
  stop(): Promise<void>;
}

export async function openWebhookEndpoint(): Promise<WebhookEndpoint> {
  let credits: Credits | undefined;
  let refusals = 0;
  let accepted = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on(
      "end",
      () =>
        void take(Buffer.concat(chunks), String(request.headers["stripe-signature"])).then((status) =>
          response.writeHead(status).end(),
        ),
    );
  });
  const take = async (body: Buffer, signature: string): Promise<number> => {
    if (credits === undefined || refusals-- > 0) return 503;
    try {
      await credits.payments.handleWebhook(body, signature);
      accepted += 1;
      return 200;
    } catch (error) {
      return error instanceof KeywrightError ? error.status : 500;
    }
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    refuse: (times) => void (refusals = times),
    serve: (next) => void (credits = next),
    get accepted() {
      return accepted;
    },
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
