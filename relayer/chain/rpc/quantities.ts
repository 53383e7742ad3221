/** Quantities as JSON-RPC writes them. */
import { RpcError } from "../../../protocol/rpc/errors";

export const quantityOf = (value: number | bigint): string => `0x${value.toString(16)}`;

/** A block number or count of transactions. Throws RpcError: an endpoint that answers with anything else has failed. */
export function countIn(answer: unknown): number {
  if (typeof answer === "string" && /^0x[0-9a-fA-F]{1,12}$/.test(answer)) return Number(answer);
  throw new RpcError("transport", "the endpoint's answer is no number of blocks or transactions");
}
