/**
 * What proves that a transaction will never be executed: another one with its nonce, in a final block. Silence proves
 * nothing: a node may have a block and not yet its receipts, and a pool of nodes may lack both.
 */
import { RpcError } from "../../../protocol/rpc/errors";
import type { KnownBlock, RpcClient } from "../rpc/client";
import { countIn, quantityOf } from "../rpc/quantities";

/** A transaction with the nonce. */
interface Use {
  readonly hash: string;
  readonly block: KnownBlock;
}

interface RpcBlock {
  readonly number: string;
  readonly hash: string;
  readonly transactions: readonly { readonly hash: string; readonly from: string; readonly nonce: string }[];
}

/** Nodes that are no archives keep the counts of this many blocks, and some more. */
const STATES_KEPT = 100;

/** Looks for what used a nonce. Its block is remembered: once it is final, most nodes have lost the counts of then. */
export class UseOfNonce {
  #block: number | undefined;
  readonly #rpc: RpcClient;

  constructor(rpc: RpcClient) {
    this.#rpc = rpc;
  }

  /** As most of the endpoints that answer see it; undefined while they do not show a transaction. */
  async find(sender: string, nonce: number): Promise<Use | undefined> {
    const block = (this.#block ??= await this.#blockOfUse(sender, nonce));
    if (block === undefined) return undefined;
    const asBlock = (answer: unknown): RpcBlock | null => answer as RpcBlock | null;
    const asked = [quantityOf(block), true] as const;
    const answers = await this.#rpc.callEverywhere("eth_getBlockByNumber", asked, asBlock);
    const blocks = answers.flatMap((answer) => (answer instanceof RpcError ? [] : [answer]));
    const seen = blocks.map((answer) => (answer === null ? undefined : useIn(answer, sender, nonce)));
    const first = seen.find((use) => use !== undefined);
    // A reorg has moved it, unless no endpoint has the block at the moment.
    if (first === undefined && blocks.some((answer) => answer !== null)) this.#block = undefined;
    const agreeing = seen.filter((use) => use?.hash === first?.hash && use?.block.hash === first?.block.hash);
    return agreeing.length * 2 > seen.length ? first : undefined;
  }

  /** The block after which the sender's count exceeds the nonce. Asks in growing steps from the head, then halves. */
  async #blockOfUse(sender: string, nonce: number): Promise<number | undefined> {
    const isUsedBy = async (block: number): Promise<boolean> =>
      countIn(await this.#rpc.call("eth_getTransactionCount", [sender, quantityOf(block)])) > nonce;
    const head = countIn(await this.#rpc.call("eth_blockNumber", []));
    let used = head;
    if (!(await isUsedBy(used))) return undefined;
    let unused = used - 1;
    for (let step = 1; unused >= 0 && (await isUsedBy(unused)); step *= 2) {
      used = unused;
      const oldest = used > head - STATES_KEPT ? head - STATES_KEPT : -1;
      unused = Math.max(-1, oldest, used - step);
    }
    while (used - unused > 1) {
      const middle = Math.floor((used + unused) / 2);
      if (await isUsedBy(middle)) used = middle;
      else unused = middle;
    }
    return used;
  }
}

function useIn({ number, hash, transactions }: RpcBlock, sender: string, nonce: number): Use | undefined {
  const found = transactions.find(
    ({ from, nonce: used }) => from.toLowerCase() === sender.toLowerCase() && Number(used) === nonce,
  );
  return found && { hash: found.hash, block: { number: Number(number), hash } };
}
