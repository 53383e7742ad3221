/** What the keyholder asks of a node: the return data of a call, and which chain it serves. Any answer that is not plain hex is none. */
import { Endpoint } from "../../protocol/rpc/endpoint";
import { RpcError } from "../../protocol/rpc/errors";

/** The endpoint gave no usable answer: unreachable, too slow, too large, refusing, or not JSON-RPC. The message never holds the endpoint's URL (it may carry a key). */
export class RpcFailure extends Error {
  override readonly name = "RpcFailure";
}

const MAX_ANSWER_BYTES = 1 << 20;

/** `latest`, or a block number. */
export type BlockTag = "latest" | bigint;

export class RpcEndpoint {
  readonly #endpoint: Endpoint;

  constructor(url: string, timeoutMs: number) {
    // Each question in an exchange of its own: one slow answer holds nobody else up.
    this.#endpoint = new Endpoint(url, { timeoutMs, maxAnswerBytes: MAX_ANSWER_BYTES, maxBatch: 1 });
  }

  /** Return data of a call, as hex. Throws RpcFailure. */
  call(to: string, data: string, block: BlockTag): Promise<string> {
    return this.#ask("eth_call", [{ to, data }, block === "latest" ? block : `0x${block.toString(16)}`]);
  }

  async chainId(): Promise<bigint> {
    return BigInt(await this.#ask("eth_chainId", []));
  }

  close(): Promise<void> {
    return this.#endpoint.close();
  }

  async #ask(method: string, params: readonly unknown[]): Promise<string> {
    const answer = await this.#endpoint.call(method, params).catch((error: unknown) => {
      throw error instanceof RpcError ? new RpcFailure(`${method}: ${error.message.slice(0, 200)}`) : error;
    });
    if (typeof answer !== "string" || !/^0x[0-9a-fA-F]*$/.test(answer)) throw new RpcFailure(`the endpoint's answer to ${method} is not hex`);
    return answer;
  }
}
