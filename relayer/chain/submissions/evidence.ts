/**
 * What proves that a transaction will never be executed: another one with its nonce, in a final block. Silence proves
 * nothing: a node may have a block and not yet its receipts, and a pool of nodes may lack both.
 */
import { RpcError } from "../../../protocol/rpc/errors";
import type { KnownBlock, RpcClient } from "../rpc/client";

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

/** What used the nonce, as most of the endpoints that answer see it; undefined while they do not show a transaction. */
export async function useOf(rpc: RpcClient, sender: string, nonce: number): Promise<Use | undefined> {
  const block = await blockOfUse(rpc, sender, nonce);
  if (block === undefined) return undefined;
  const useIn = (answer: RpcBlock | null): Use | undefined => {
    const found = answer?.transactions.find(
      ({ from, nonce: used }) => from.toLowerCase() === sender.toLowerCase() && Number(used) === nonce,
    );
    if (answer === null || found === undefined) return undefined;
    return { hash: found.hash, block: { number: Number(answer.number), hash: answer.hash } };
  };
  const answers = await rpc.callEverywhere<RpcBlock | null>("eth_getBlockByNumber", [hex(block), true]);
  const seen = answers.flatMap((answer) => (answer instanceof RpcError ? [] : [useIn(answer)]));
  const first = seen.find((use) => use !== undefined);
  const agreeing = seen.filter((use) => use?.hash === first?.hash && use?.block.hash === first?.block.hash);
  return agreeing.length * 2 > seen.length ? first : undefined;
}

/** The block after which the sender's count exceeds the nonce. Asks in growing steps from the head, then halves. */
async function blockOfUse(rpc: RpcClient, sender: string, nonce: number): Promise<number | undefined> {
  const isUsedBy = async (block: number): Promise<boolean> =>
    Number(await rpc.call<string>("eth_getTransactionCount", [sender, hex(block)])) > nonce;
  let used = Number(await rpc.call<string>("eth_blockNumber", []));
  if (!(await isUsedBy(used))) return undefined;
  let unused = used - 1;
  for (let step = 1; unused >= 0 && (await isUsedBy(unused)); step *= 2) {
    used = unused;
    unused = Math.max(-1, used - step);
  }
  while (used - unused > 1) {
    const middle = Math.floor((used + unused) / 2);
    if (await isUsedBy(middle)) used = middle;
    else unused = middle;
  }
  return used;
}

const hex = (block: number): string => `0x${block.toString(16)}`;
