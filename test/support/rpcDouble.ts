/** A scripted JSON-RPC endpoint that answers for a simulated chain, correctly or with faults. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Interface } from "ethers";
import { ZERO_ADDRESS } from "../../protocol/ids";
import { AccountManager__factory } from "../../typechain-types";

const ABI: Interface = AccountManager__factory.createInterface();

export interface World {
  chainId: bigint;
  keyNamespace: string;
  head: bigint;
  /** Unix seconds. */
  headTime: number;
  allowed: boolean;
  baseFee: bigint;
  /** The newest existing block; `head` is the one this endpoint reports as latest. Without it every block exists. */
  newest?: bigint;
  /** The block number that contracts see for a block. */
  shownAs?: (block: bigint) => bigint;
}

interface Message {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

type Fault = "none" | "hang" | "refuse" | "not json" | "rpc error" | "huge" | "garbage";

export class RpcDouble {
  fault: Fault = "none";
  calls = 0;
  readonly #server: Server;

  private constructor(
    server: Server,
    readonly world: World,
  ) {
    this.#server = server;
  }

  static async start(world: Partial<World> = {}): Promise<RpcDouble> {
    const server = createServer();
    const double = new RpcDouble(server, {
      chainId: 31_337n,
      keyNamespace: `0x${"00".repeat(32)}`,
      head: 100n,
      headTime: Math.floor(Date.now() / 1000),
      allowed: true,
      baseFee: 1n,
      ...world,
    });
    server.on("request", (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const answer = double.#answer(Buffer.concat(chunks).toString());
        if (answer === undefined) return;
        if (answer === "refuse") return void response.writeHead(503).end("busy");
        response.setHeader("content-type", "application/json");
        response.end(answer);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return double;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The body of the answer; undefined to not answer. */
  #answer(body: string): string | undefined {
    this.calls++;
    const asked = JSON.parse(body) as Message | readonly Message[];
    if (!Array.isArray(asked)) return this.#answerOne(asked as Message);
    const answers = asked.map((message: Message) => this.#answerOne(message));
    // A fault of the exchange concerns all calls of a batch.
    return this.fault === "none" || this.fault === "rpc error" ? `[${answers.join()}]` : answers[0];
  }

  #answerOne({ id, method, params }: Message): string | undefined {
    const reply = (result: unknown): string => JSON.stringify({ jsonrpc: "2.0", id, result });
    switch (this.fault) {
      case "hang":
        return undefined;
      case "refuse":
        return "refuse";
      case "not json":
        return "<html>";
      case "rpc error":
        return JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_000, message: "header not found" } });
      case "huge":
        return reply(`0x${"00".repeat(3_000_000)}`);
      case "garbage":
        return reply("0x1234");
      case "none":
        if (
          method === "eth_call" &&
          BigInt(params[1] === "latest" ? 0 : (params[1] as string)) > (this.world.newest ?? 2n ** 64n)
        )
          return JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_000, message: "header not found" } });
        return reply(this.#result(method, params));
    }
  }

  #result(method: string, params: readonly unknown[]): unknown {
    switch (method) {
      case "eth_chainId":
        return hex(this.world.chainId);
      case "eth_blockNumber":
        return hex(this.world.head);
      case "eth_getBlockByNumber":
        return this.#block(params[0] as string);
      case "eth_getLogs":
        return [];
      default:
        return this.#call((params[0] as { data: string }).data, params[1] as string);
    }
  }

  #at(block: string): { number: bigint; time: number } {
    const { head, headTime } = this.world;
    const number = block === "latest" ? head : BigInt(block);
    return { number, time: headTime - Number(head - number) * 12 };
  }

  #block(block: string): object {
    const { number, time } = this.#at(block);
    const hash = `0x${number.toString(16).padStart(64, "0")}`;
    return { number: hex(number), hash, timestamp: hex(time), baseFeePerGas: hex(this.world.baseFee) };
  }

  #call(data: string, block: string): string {
    const { keyNamespace, allowed, shownAs = (number: bigint) => number } = this.world;
    if (data.startsWith(ABI.getFunction("keyNamespace")?.selector ?? "")) return keyNamespace;
    const { number, time } = this.#at(block);
    const decision = ABI.encodeFunctionResult("explainExecution", [
      allowed,
      allowed ? 0 : 1,
      allowed,
      allowed ? 5n : 0n,
      0n,
      shownAs(number),
      time,
      0n,
    ]);
    if (!data.startsWith(ABI.getFunction("multicall")?.selector ?? "")) return decision;
    const key = ABI.encodeFunctionResult("getKey", [
      [allowed ? 5n : 0n, false, allowed, true, ZERO_ADDRESS, 0n, 0n, false],
    ]);
    const [calls] = ABI.decodeFunctionData("multicall", data) as unknown as [string[]];
    return ABI.encodeFunctionResult("multicall", [[decision, key, decision].slice(0, calls.length)]);
  }
}

const hex = (value: bigint | number): string => `0x${value.toString(16)}`;
