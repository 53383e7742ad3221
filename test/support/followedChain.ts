/** Blocks with the contract's events, and an endpoint that answers as they are, or as a test has it answer. */
import { randomBytes } from "node:crypto";
import { zeroPadValue, type EventFragment } from "ethers";
import type { Address } from "../../protocol/ids";
import type { RpcCall, RpcResult } from "../../protocol/rpc/endpoint";
import { CONTRACT } from "../../relayer/chain/abi/contract";
import { quantityOf } from "../../relayer/chain/rpc/quantities";
import type { ChainLog } from "../../relayer/chain/events/eventRows";
import { Follower } from "../../relayer/chain/events/follower";
import { RpcClient } from "../../relayer/chain/rpc/client";
import type { Db } from "../../relayer/store/database";

const CONTRACT_ADDRESS = zeroPadValue("0x01", 20) as Address;
/** Rules nothing out, so that an endpoint's empty answer counts. */
const FULL_BLOOM = `0x${"ff".repeat(256)}`;
export const FINALITY_DEPTH = 4;

export const randomHash = (): string => `0x${randomBytes(32).toString("hex")}`;

/** An event by its name and its arguments in order. */
export type MadeEvent = readonly [name: string, ...args: readonly unknown[]];

interface MadeBlock {
  readonly number: string;
  readonly hash: string;
  readonly parentHash: string;
  readonly logsBloom: string;
  readonly logs: readonly ChainLog[];
}

export interface LogFilter {
  readonly address: string;
  readonly blockHash?: string;
  readonly fromBlock?: string;
  readonly toBlock?: string;
}

export class FollowedChain {
  readonly blocks: MadeBlock[] = [];
  readonly warnings: unknown[] = [];
  /** What the endpoint answers instead, if anything. */
  instead: (call: RpcCall) => RpcResult | undefined = () => undefined;

  constructor() {
    this.mine();
  }

  /** @returns the number of the new block. */
  mine(...events: readonly MadeEvent[]): number {
    const [number, blockHash] = [quantityOf(this.blocks.length), randomHash()];
    const logs = events.map(([name, ...args], index) => ({
      ...CONTRACT.encodeEventLog(CONTRACT.getEvent(name) as EventFragment, args),
      ...{ address: CONTRACT_ADDRESS, blockNumber: number, blockHash },
      ...{ transactionHash: randomHash(), logIndex: quantityOf(index) },
    }));
    const parentHash = this.blocks.at(-1)?.hash ?? randomHash();
    this.blocks.push({ number, hash: blockHash, parentHash, logsBloom: FULL_BLOOM, logs });
    return this.blocks.length - 1;
  }

  mineEmpty(count: number): void {
    for (let mined = 0; mined < count; mined++) this.mine();
  }

  /** Whether a filter asks for the contract's logs of this block, alone or among others. */
  isAbout(number: number, { address, blockHash, fromBlock, toBlock }: LogFilter): boolean {
    if (address.toLowerCase() !== CONTRACT_ADDRESS) return false;
    if (blockHash !== undefined) return this.blocks[number]?.hash === blockHash;
    return Number(fromBlock) <= number && number <= Number(toBlock);
  }

  /** A relayer's that begins at the store's position. */
  follower(db: Db): Follower {
    const rpc = new RpcClient({
      ...{ chainId: 1n, urls: ["only"], timeoutMs: 50, deadlineMs: 50 },
      connect: () => ({
        callTogether: async (calls) => calls.map((call) => this.instead(call) ?? { value: this.#answer(call) }),
        close: async () => undefined,
      }),
    });
    const log = { warn: (facts: unknown) => this.warnings.push(facts) };
    const place = { contractAddress: CONTRACT_ADDRESS, deploymentBlock: 1, finalityDepth: FINALITY_DEPTH };
    return new Follower({ db, rpc, ...place, log: log as never, onReorg: () => undefined });
  }

  #answer({ method, params }: RpcCall): unknown {
    if (method === "eth_chainId") return "0x1";
    if (method === "eth_blockNumber") return this.blocks.at(-1)?.number;
    if (method === "eth_getBlockByNumber")
      return this.blocks.at(params[0] === "latest" ? -1 : Number(params[0])) ?? null;
    if (method === "eth_getLogs") return this.#logs(params[0] as LogFilter);
    const block = this.blocks.find(({ hash }) => hash === params[0]);
    return block && [{ blockHash: block.hash, logsBloom: block.logsBloom, logs: block.logs }];
  }

  #logs(filter: LogFilter): readonly ChainLog[] {
    return this.blocks.filter((_, number) => this.isAbout(number, filter)).flatMap(({ logs }) => logs);
  }
}
