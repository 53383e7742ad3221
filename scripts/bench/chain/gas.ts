/** Gas per write, alone and in a full batch, from the receipts of all transactions to the contract. */
import { Interface, JsonRpcProvider } from "ethers";
import { AccountManager__factory } from "../../../typechain-types";
import type { Stack } from "../../dev/stack";
import { median, rounded } from "../statistics";

export interface GasPerWrite {
  readonly alone: number;
  /** In a batch of `batchSize`, the largest found. */
  readonly together: number;
  readonly batchSize: number;
  readonly ratio: number;
}

const CONTRACT = new Interface(AccountManager__factory.abi);
const ADD_GROUP = CONTRACT.getFunction("addGroup")?.selector ?? "";

interface Sent {
  readonly writes: number;
  readonly gas: number;
}

/** Only `addGroup`; an account's first one costs more, but these are few, so medians are unaffected. */
export async function gasPerWrite({ rpcUrl, contractAddress }: Stack): Promise<GasPerWrite> {
  const provider = new JsonRpcProvider(rpcUrl, undefined, { staticNetwork: true, cacheTimeout: -1, batchMaxCount: 50 });
  try {
    const newest = await provider.getBlockNumber();
    const sent: Sent[] = [];
    for (let block = 1; block <= newest; block++) sent.push(...(await ofBlock(provider, contractAddress, block)));
    const batchSize = Math.max(...sent.map(({ writes }) => writes));
    const of = (size: number): number =>
      rounded(median(sent.filter(({ writes }) => writes === size).map(({ gas, writes }) => gas / writes)), 0);
    return { alone: of(1), together: of(batchSize), batchSize, ratio: rounded(of(batchSize) / of(1), 3) };
  } finally {
    provider.destroy();
  }
}

async function ofBlock(provider: JsonRpcProvider, contract: string, number: number): Promise<readonly Sent[]> {
  const tag = `0x${number.toString(16)}`;
  const block = (await provider.send("eth_getBlockByNumber", [tag, true])) as {
    transactions: { hash: string; to: string | null; input: string }[];
  };
  const ours = block.transactions.filter(
    ({ to, input }) => to?.toLowerCase() === contract.toLowerCase() && writesIn(input) > 0,
  );
  if (ours.length === 0) return [];
  const receipts = (await provider.send("eth_getBlockReceipts", [tag])) as {
    transactionHash: string;
    gasUsed: string;
  }[];
  const gasOf = new Map(receipts.map(({ transactionHash, gasUsed }) => [transactionHash, Number(gasUsed)]));
  return ours.map(({ hash, input }) => ({ writes: writesIn(input), gas: gasOf.get(hash) ?? NaN }));
}

/** 0 unless all calls are `addGroup`. */
function writesIn(input: string): number {
  if (input.startsWith(ADD_GROUP)) return 1;
  const decoded = CONTRACT.parseTransaction({ data: input });
  if (decoded?.name !== "tryMulticall") return 0;
  const calls = [...(decoded.args[0] as Iterable<string>)];
  return calls.every((call) => call.startsWith(ADD_GROUP)) ? calls.length : 0;
}
