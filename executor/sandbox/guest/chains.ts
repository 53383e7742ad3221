/** Functions of older systems that ask chains, at the endpoints that the operator names. */
import type { RpcUrls } from "../types";
import { fieldsOf, type Fields, type NamedFunctions } from "./older";

interface Transaction {
  readonly from?: string | null;
  readonly to?: string | null;
  readonly data: string;
  readonly value: { toString(): string };
}
/** Version 6 or 5, as the code uses it. */
declare const ethers: {
  readonly Transaction?: { from(serialized: string): Transaction };
  readonly utils: { parseTransaction(serialized: string): Transaction };
};

export function chainFunctions(rpcUrls: () => RpcUrls): NamedFunctions {
  const { keys } = Object;

  function urlOf(name: string, args: unknown): string {
    const chain = String(fieldsOf(name, args, ["chain"]).chain);
    const known = rpcUrls();
    const url = known[chain];
    if (typeof url !== "string") throw new RangeError(noEndpoint(name, chain, keys(known)));
    return url;
  }

  return [
    ["getRpcUrl", async (args: unknown) => urlOf("getRpcUrl", args)],
    [
      "getLatestNonce",
      async (args: unknown) => {
        const url = urlOf("getLatestNonce", args);
        const { address } = fieldsOf("getLatestNonce", args, ["address", "chain"]);
        return askNode(url, "eth_getTransactionCount", [address, "latest"]);
      },
    ],
    [
      "callContract",
      async (args: unknown) => {
        const url = urlOf("callContract", args);
        const { txn } = fieldsOf("callContract", args, ["chain", "txn"]);
        return askNode(url, "eth_call", [callOf(String(txn)), "latest"]);
      },
    ],
  ];
}

const noEndpoint = (name: string, chain: string, known: readonly string[]): string =>
  `Actions.${name}: this service names no endpoint of the chain ${chain}` +
  `${known.length > 0 ? `; it names ${known.join(", ")}` : ""}. Use an endpoint of your own choice: ` +
  "an ethers provider takes its address.";

interface Answer {
  readonly result: unknown;
  readonly error: { readonly message?: string };
}

async function askNode(url: string, method: string, params: readonly unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { result, error } = (await answer.json().catch(() => ({}))) as Partial<Answer>;
  if (result === undefined) throw new Error(`${method} failed: ${error?.message ?? `status ${answer.status}`}`);
  return result;
}

/** The call that a serialized transaction makes. */
function callOf(serialized: string): Fields {
  const { Transaction, utils } = ethers;
  const { from, to, data, value } = Transaction?.from(serialized) ?? utils.parseTransaction(serialized);
  return { ...(from && { from }), to, data, value: `0x${BigInt(value.toString()).toString(16)}` };
}
