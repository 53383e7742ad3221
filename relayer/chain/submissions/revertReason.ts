/** Finds out why a call of a mined transaction failed: receipts do not contain the reason. */
import { ERRORS, type KeywrightError } from "../../../protocol/errors";
import { RpcError } from "../../../protocol/rpc/errors";
import type { Receipt } from "../abi/receipts";
import { revertError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";
import type { SubmissionFailure } from "../types";

/** Repeats the call on the state after its block, where the cause usually persists; else on the state before it. */
export async function reasonOf(rpc: RpcClient, call: object, { blockNumber }: Receipt): Promise<SubmissionFailure> {
  for (const block of [Number(blockNumber), Number(blockNumber) - 1]) {
    const error = await revertOf(rpc, call, block);
    if (error !== undefined) return { code: error.code, detail: error.detail, facts: { ...error.facts } };
  }
  return unknownReason;
}

export const unknownReason: SubmissionFailure = {
  code: "write_reverted",
  detail: `${ERRORS.write_reverted.title}; the node does not say why.`,
  facts: {},
};

async function revertOf(rpc: RpcClient, call: object, block: number): Promise<KeywrightError | undefined> {
  try {
    await rpc.call("eth_call", [call, `0x${block.toString(16)}`]);
    return undefined;
  } catch (error) {
    if (!(error instanceof RpcError) || error.failure !== "reverted") return undefined;
    const named = revertError(error.data);
    return named.code === "internal_error" ? undefined : named;
  }
}
