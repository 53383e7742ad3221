/**
 * A proxy between a relayer and its node that injects faults: drops, delays, forwards without answering, answers
 * falsely or from other nodes. Faults apply to each JSON-RPC call of a batch separately; an exchange with a hanging
 * call is never answered.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { request as fetchFrom } from "undici";

export interface RpcMessage {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}
export type RpcAnswer = { result: unknown } | { error: { code: number; message: string; data?: unknown } };

/** Decides a call's answer: undefined lets it through. */
export type Fault = (
  call: RpcMessage,
  forward: () => Promise<RpcAnswer>,
) => Promise<RpcAnswer | typeof HANG | typeof BREAK | undefined> | undefined;
/** The exchange never ends. */
export const HANG: unique symbol = Symbol("hang");
/** The exchange is cut. */
export const BREAK: unique symbol = Symbol("break");

export class RpcProxy {
  readonly #server: Server;
  #faults: Fault[] = [];
  #wholeFault: ((response: ServerResponse) => void) | undefined;
  readonly seen: RpcMessage[] = [];
  readonly #target: string;

  private constructor(target: string) {
    this.#target = target;
    this.#server = createServer((incoming, response) => void this.#serve(incoming, response));
  }

  static start(target: string): Promise<RpcProxy> {
    return RpcProxy.startOn(target, 0);
  }

  static async startOn(target: string, port: number): Promise<RpcProxy> {
    const proxy = new RpcProxy(target);
    proxy.#server.listen(port, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  /** Adds a fault until the returned function is called. */
  inject(fault: Fault): () => void {
    this.#faults.push(fault);
    return () => {
      this.#faults = this.#faults.filter((other) => other !== fault);
    };
  }

  /** Applies the fault to the first `times` calls of a method. */
  injectTimes(times: number, method: string, fault: Fault): void {
    let left = times;
    this.inject((call, forward) => (call.method === method && left-- > 0 ? fault(call, forward) : undefined));
  }

  /** Breaks whole exchanges before anything is forwarded. */
  breakAll(how: (response: ServerResponse) => void): void {
    this.#wholeFault = how;
  }

  heal(): void {
    this.#faults = [];
    this.#wholeFault = undefined;
  }

  count(method: string): number {
    return this.seen.filter((call) => call.method === method).length;
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    if (this.#wholeFault !== undefined) return this.#wholeFault(response);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as RpcMessage | RpcMessage[];
    const calls = Array.isArray(body) ? body : [body];
    const answers = await Promise.all(calls.map((call) => this.#answer(call)));
    if (answers.includes(HANG)) return;
    if (answers.includes(BREAK)) return void response.destroy();
    const messages = answers.map((answer, index) => ({
      ...(answer as RpcAnswer),
      jsonrpc: "2.0",
      id: calls[index]?.id,
    }));
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(Array.isArray(body) ? messages : messages[0]));
  }

  async #answer(call: RpcMessage): Promise<RpcAnswer | typeof HANG | typeof BREAK> {
    this.seen.push(call);
    const forward = (): Promise<RpcAnswer> => this.#forward(call);
    for (const fault of this.#faults) {
      const answer = await fault(call, forward);
      if (answer !== undefined) return answer;
    }
    return forward().catch(() => BREAK);
  }

  async #forward(call: RpcMessage): Promise<RpcAnswer> {
    const { body } = await fetchFrom(this.#target, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: call.method, params: call.params }),
    });
    return (await body.json()) as RpcAnswer;
  }
}

/** Faults by name. */
export const swallow: Fault = () => Promise.resolve(HANG);
export const cut: Fault = () => Promise.resolve(BREAK);
/** The node receives the call; the caller never gets an answer. */
export const forwardThenHang: Fault = async (_call, forward): Promise<typeof HANG> => {
  await forward();
  return HANG;
};
export const refuseWith =
  (message: string, code = -32_000): Fault =>
  () =>
    Promise.resolve({ error: { code, message } });
export const after =
  (ms: number): Fault =>
  async (_call, forward) => {
    await new Promise((resolve) => setTimeout(resolve, ms));
    return forward();
  };
