/** Why a write failed, as it is stored and shown. */
import { ERRORS, type KeywrightError } from "../../../protocol/errors";
import { RpcError } from "../../../protocol/rpc/errors";
import type { RpcClient } from "../rpc/client";
import { quantityOf } from "../rpc/quantities";
import type { SubmissionFailure } from "../types";
import type { Receipt } from "./receipts";
import { revertError } from "./reverts";

export const failureOf = ({ code, detail, facts }: KeywrightError): SubmissionFailure => ({ code, detail, facts });

export const UNKNOWN_REASON: SubmissionFailure = {
  code: "write_reverted",
  detail: `${ERRORS.write_reverted.title}; the node does not say why.`,
  facts: {},
};

/** Undefined for a revert without a reason that the contract declares. */
export function nameOf(revertData: string | undefined): SubmissionFailure | undefined {
  const named = revertError(revertData);
  return named.code === "internal_error" ? undefined : failureOf(named);
}

/**
 * Why a call of a mined transaction failed, which receipts do not contain: repeats the call on the state after its
 * block, where the cause usually persists; else on the state before it.
 */
export async function reasonOf(rpc: RpcClient, call: object, { blockNumber }: Receipt): Promise<SubmissionFailure> {
  for (const block of [Number(blockNumber), Number(blockNumber) - 1]) {
    try {
      await rpc.call("eth_call", [call, quantityOf(block)]);
    } catch (error) {
      const named = error instanceof RpcError && error.failure === "reverted" ? nameOf(error.data) : undefined;
      if (named !== undefined) return named;
    }
  }
  return UNKNOWN_REASON;
}
