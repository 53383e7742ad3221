/**
 * A double of Stripe's HTTP API for development and tests: it has the same formats, so the real `stripe` package works
 * against it. Checks idempotency keys, API keys and client secrets; supports the test cards; sends signed webhooks.
 * Keeps everything in memory and moves no money.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Stripe from "stripe";
import { z } from "zod";
import { badKey, invalidRequest, StripeHttpError, FAULT_KINDS, Faults, type FaultKind } from "./errors";
import { decodeForm, type FormValue } from "./form";
import { IdempotencyKeys, type Answer } from "./idempotency";
import { newId, nowSeconds, Objects, type Event } from "./objects";
import { PaymentDesk } from "./payments";
import { resourcesOf, type Resource } from "./resources";
import { Webhooks } from "./webhooks";

export interface StripeDoubleOptions {
  /** 0 = any free port. */
  readonly port: number;
  readonly webhookUrl?: string | undefined;
  readonly webhookSecret: string;
  readonly retryDelaysMs?: readonly number[];
}

export interface StripeDouble {
  readonly url: string;
  readonly objects: Objects;
  readonly faults: Faults;
  readonly webhooks: Webhooks;
  stop(): Promise<void>;
}

const RETRY_DELAYS_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000, 60_000];

export async function startStripeDouble(options: StripeDoubleOptions): Promise<StripeDouble> {
  const double = new Double(options);
  return double.listen(options.port);
}

class Double {
  readonly #objects = new Objects();
  readonly #faults = new Faults();
  readonly #keys = new IdempotencyKeys();
  readonly #webhooks: Webhooks;
  readonly #resources: Resource[];
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  #url = "";

  constructor(options: StripeDoubleOptions) {
    this.#webhooks = new Webhooks({
      url: options.webhookUrl,
      secret: options.webhookSecret,
      retryDelaysMs: options.retryDelaysMs ?? RETRY_DELAYS_MS,
    });
    const desk = new PaymentDesk(
      this.#objects,
      (type, object) => this.#emit(type, object),
      () => this.#url,
    );
    this.#resources = resourcesOf(this.#objects, desk);
  }

  async listen(port: number): Promise<StripeDouble> {
    await new Promise<void>((resolve, reject) => this.#server.once("error", reject).listen(port, "127.0.0.1", resolve));
    this.#url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return {
      url: this.#url,
      objects: this.#objects,
      faults: this.#faults,
      webhooks: this.#webhooks,
      stop: () => this.#stop(),
    };
  }

  async #stop(): Promise<void> {
    await this.#webhooks.stop();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #emit(type: string, object: unknown): void {
    const event: Event = {
      id: newId("evt"),
      object: "event",
      created: nowSeconds(),
      livemode: false,
      api_version: Stripe.API_VERSION,
      type,
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      data: { object: structuredClone(object) },
    };
    this.#objects.events.set(event.id, event);
    this.#webhooks.send(event);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.#url);
    const body = await text(request);
    response.setHeader("request-id", newId("req"));
    for (const [name, value] of Object.entries(CORS)) response.setHeader(name, value);
    if (request.method === "OPTIONS") return void response.writeHead(204).end();
    if (url.pathname.startsWith("/_double/")) return answer(response, this.#control(url.pathname, body));
    const fault = this.#faults.strike(request.method ?? "", url.pathname);
    if (fault === "lost_before") return void request.socket.destroy();
    if (fault === "error_before") return answer(response, internalError());
    const { result, replayed } = await this.#answerOnce(request, url, body, fault);
    if (fault === "lost_after") return void request.socket.destroy();
    if (replayed) response.setHeader("idempotent-replayed", "true");
    answer(response, result);
  }

  async #answerOnce(
    request: IncomingMessage,
    url: URL,
    body: string,
    fault: FaultKind | undefined,
  ): Promise<{ result: Answer; replayed: boolean }> {
    const header = request.headers["idempotency-key"];
    const key = request.method === "POST" && typeof header === "string" ? header : undefined;
    try {
      const call = this.#prepare(request, url, body);
      const { answer: result, replayed } = await this.#keys.once(
        key,
        `${request.method} ${url.pathname} ${body}`,
        async () => perform(call, fault),
      );
      return { result, replayed };
    } catch (error) {
      return { result: errorAnswer(error), replayed: false };
    }
  }

  /** Checks route and key before the idempotency key. */
  #prepare(request: IncomingMessage, url: URL, body: string): () => unknown {
    const method = request.method ?? "";
    const [resource, id] = this.#find(method, url.pathname);
    const key = keyOf(request);
    const secretKey = key?.startsWith("sk_test_") ?? false;
    if (!secretKey && !(resource.publishable && key?.startsWith("pk_test_"))) throw badKey(key);
    const form: Record<string, FormValue> = decodeForm(method === "GET" ? url.search : body);
    return () => resource.answer({ id, form, secretKey });
  }

  #find(method: string, path: string): [Resource, string] {
    for (const resource of this.#resources) {
      const match = new RegExp(`^${resource.path.replace(":id", "([A-Za-z0-9_]+)")}$`).exec(path);
      if (match !== null && resource.method === method) return [resource, match[1] ?? ""];
    }
    throw invalidRequest(`Unrecognized request URL (${method}: ${path}).`, { status: 404 });
  }

  /** Exposes `faults` and `webhooks` to tests in other processes. */
  #control(path: string, body: string): Answer {
    try {
      if (path === "/_double/faults") this.#faults.plan(faultSchema.parse(JSON.parse(body)));
      else if (path === "/_double/webhooks")
        Object.assign(this.#webhooks.behaviour, behaviourSchema.parse(JSON.parse(body)));
      else return { status: 404, body: "{}" };
      return { status: 200, body: "{}" };
    } catch (error) {
      return { status: 400, body: JSON.stringify({ error: String(error) }) };
    }
  }
}

const faultSchema = z.strictObject({
  kind: z.enum(FAULT_KINDS),
  where: z.string().default(""),
  times: z.int().min(1).default(1),
});
const behaviourSchema = z
  .strictObject({ copies: z.int().min(0), lossRate: z.number().min(0).max(1), disorderMs: z.number().min(0) })
  .partial();

/** CORS headers for browsers with a publishable key. */
const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "authorization, content-type, idempotency-key, stripe-version",
  "access-control-allow-methods": "GET, POST",
};

/**
 * Parameter errors precede the work and are not kept under an idempotency key; a declined card is kept like any answer.
 */
async function perform(call: () => unknown, fault: FaultKind | undefined): Promise<{ answer: Answer; keep: boolean }> {
  const done = outcomeOf(call);
  return fault === "error_after" ? { answer: internalError(), keep: true } : done;
}

function outcomeOf(call: () => unknown): { answer: Answer; keep: boolean } {
  try {
    return { answer: { status: 200, body: JSON.stringify(call()) }, keep: true };
  } catch (error) {
    const failed = errorAnswer(error);
    return { answer: failed, keep: failed.status === 402 };
  }
}

function errorAnswer(error: unknown): Answer {
  if (error instanceof StripeHttpError) return { status: error.status, body: JSON.stringify({ error: error.body }) };
  return { status: 500, body: JSON.stringify({ error: { type: "api_error", message: String(error) } }) };
}

function internalError(): Answer {
  return { status: 500, body: JSON.stringify({ error: { type: "api_error", message: "An unknown error occurred." } }) };
}

function answer(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { "content-type": "application/json" }).end(body);
}

/** `Bearer <key>`, or Basic with the key as user name. */
function keyOf(request: IncomingMessage): string | undefined {
  const [scheme = "", value = ""] = (request.headers.authorization ?? "").split(" ");
  if (/^bearer$/i.test(scheme)) return value;
  if (/^basic$/i.test(scheme)) return Buffer.from(value, "base64").toString().split(":")[0];
  return undefined;
}

async function text(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
