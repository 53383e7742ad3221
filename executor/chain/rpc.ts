/**
 * The least JSON-RPC a decision needs: one kept-alive connection pool per endpoint, a deadline on every call, answers checked for shape and size.
 */
import { Pool } from "undici";
import { z } from "zod";
import { withinMs } from "../../protocol/deadline";

/** The endpoint gave no usable answer: unreachable, too slow, too large, or not JSON-RPC. The message never holds the endpoint's URL (it may carry a key). */
export class RpcFailure extends Error {
  override readonly name = "RpcFailure";
}

/** The endpoint answered with an error of its own. */
export class RpcErrorAnswer extends Error {
  override readonly name = "RpcErrorAnswer";
  constructor(
    readonly rpcCode: number,
    message: string,
  ) {
    super(message);
  }
}

const MAX_ANSWER_BYTES = 1 << 20;
const CONNECTIONS = 16;

const answerSchema = z.union([z.object({ result: z.string() }), z.object({ error: z.object({ code: z.number(), message: z.string() }) })]);

/** `latest`, or a block number. */
export type BlockTag = "latest" | bigint;

export class RpcEndpoint {
  readonly #pool: Pool;
  readonly #path: string;
  readonly #headers: Record<string, string>;
  #nextId = 1;

  constructor(
    url: string,
    private readonly timeoutMs: number,
  ) {
    const { origin, pathname, search, username, password } = new URL(url);
    this.#pool = new Pool(origin, { connections: CONNECTIONS, pipelining: 1, keepAliveTimeout: 30_000, maxResponseSize: MAX_ANSWER_BYTES });
    this.#path = pathname + search;
    const basic = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64");
    this.#headers = { "content-type": "application/json", ...(username === "" ? {} : { authorization: `Basic ${basic}` }) };
  }

  /** Return data of a call, as hex. Throws RpcFailure or RpcErrorAnswer. */
  call(to: string, data: string, block: BlockTag): Promise<string> {
    return this.#send("eth_call", [{ to, data }, block === "latest" ? block : `0x${block.toString(16)}`]);
  }

  async chainId(): Promise<bigint> {
    return BigInt(await this.#send("eth_chainId", []));
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #send(method: string, params: unknown[]): Promise<string> {
    const text = await this.#post(JSON.stringify({ jsonrpc: "2.0", id: this.#nextId++, method, params }));
    const answer = answerSchema.safeParse(parseJson(text));
    if (!answer.success) throw new RpcFailure(`the endpoint's answer to ${method} is not JSON-RPC`);
    if ("error" in answer.data) throw new RpcErrorAnswer(answer.data.error.code, answer.data.error.message.slice(0, 200));
    if (!/^0x[0-9a-fA-F]*$/.test(answer.data.result)) throw new RpcFailure(`the endpoint's answer to ${method} is not hex`);
    return answer.data.result;
  }

  async #post(body: string): Promise<string> {
    try {
      return await withinMs(this.timeoutMs, async (signal) => {
        const answer = await this.#pool.request({ path: this.#path, method: "POST", headers: this.#headers, body, signal });
        return answer.body.text();
      });
    } catch (error) {
      throw new RpcFailure(`the endpoint could not be asked: ${describe(error, this.timeoutMs)}`);
    }
  }
}

function describe(error: unknown, timeoutMs: number): string {
  if (error instanceof Error && error.name === "TimeoutError") return `no answer within ${timeoutMs} ms`;
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" ? code : "connection failed";
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
