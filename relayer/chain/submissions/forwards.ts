/**
 * Forward requests: whether one would succeed, the gas of several in one transaction, and the outcome of each from its
 * receipt. The forwarder skips requests that have become invalid and reports for the others whether their calls
 * succeeded, but not why one failed: the reason is queried from the chain.
 */
import { KeywrightError } from "../../../protocol/errors";
import { decodeForward, forwarderCalldata, type SignedForwardRequest } from "../../../protocol/forward";
import type { Address } from "../../../protocol/ids";
import { Executions, noncesCall } from "../abi/forwarder";
import { eventsByAccount, eventsOf, resultOf, type Receipt } from "../abi/receipts";
import { namedError } from "../abi/reverts";
import type { RpcClient } from "../rpc/client";
import type { SubmissionFailure } from "../types";
import type { Outcome, WriteRow } from "./rows";
import { reasonOf } from "./simulation";

/** Requests with a higher gas limit do not share a transaction: they could use up that much gas of the others. */
const MAX_SHARED_GAS = 1_000_000n;
const MAX_SHARED_BYTES = 8_192;
const TRANSACTION_GAS = 21_000n;
/** Overhead per request: the loop and its part of the calldata's decoding. */
const AROUND_REQUEST = 10_000n;
/** Cost of a non-zero byte of calldata. */
const BYTE_GAS = 16n;
const FIELDS_BYTES = 512;

export interface MeasuredForward {
  readonly request: SignedForwardRequest;
  /** Gas of the forwarder's `execute`: signature, nonce and event included. */
  readonly gas: bigint;
}

const dataBytesOf = ({ data }: SignedForwardRequest): number => (data.length - 2) / 2;

export const mayShareForwards = (request: SignedForwardRequest): boolean =>
  BigInt(request.gas) <= MAX_SHARED_GAS && dataBytesOf(request) <= MAX_SHARED_BYTES;

/**
 * Based on the gas that the calls used in the simulation, not on the limits in the requests: the full limit counts
 * against the payer's balance and the executor's budget, even if unused. A call that uses more than in its simulation
 * may take the gas of the others; the transaction then fails as a whole, and each is sent alone (`recovery.ts`).
 * OpenZeppelin's forwarder reverts the transaction unless 1/63 of a request's gas limit is left after its call. The
 * margin of a fifth over the simulated gas also covers the 1/64 that a caller retains (EIP-150).
 */
export function limitOfForwards(requests: readonly MeasuredForward[]): bigint {
  const spare = requests.reduce((most, { request }) => larger(most, BigInt(request.gas) / 63n + 1n), 0n);
  const each = ({ request, gas }: MeasuredForward): bigint =>
    (gas * 12n) / 10n + AROUND_REQUEST + BYTE_GAS * BigInt(dataBytesOf(request) + FIELDS_BYTES);
  return requests.reduce((sum, request) => sum + each(request), TRANSACTION_GAS + spare);
}

const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);

export interface ForwardSimulation {
  readonly rpc: RpcClient;
  readonly forwarder: () => Promise<Address>;
  readonly minBlock: () => Promise<number>;
  /** A payer, the sender of the transaction. */
  readonly payer: Address;
}

/**
 * The gas of the forwarder's transaction.
 * @throws KeywrightError `forward_nonce_used`, the contract's named error, `forward_gas_too_low`, `chain_unavailable`.
 */
export async function simulateForward(
  request: SignedForwardRequest,
  { rpc, forwarder, minBlock, payer }: ForwardSimulation,
): Promise<bigint> {
  const [to, block] = [await forwarder(), await minBlock()];
  const requireNonce = async (): Promise<void> => {
    const { values } = await rpc.callAt(block, (at) => [
      { method: "eth_call", params: [{ to, data: noncesCall(request.from) }, at] },
    ]);
    requireNext(BigInt(request.nonce), BigInt(values[0] as string));
  };
  await requireNonce();
  const needed = await estimateAsOwner(rpc, block, request);
  const call = { from: payer, to, data: forwarderCalldata([request], payer) };
  try {
    const { values } = await rpc.callAt(block, (at) => [{ method: "eth_estimateGas", params: [call, at] }]);
    return BigInt(values[0] as string);
  } catch (error) {
    const named = namedError(error);
    if (named === error) throw error;
    await requireNonce();
    // The call succeeds and the request is valid, so the gas it allows must be too low.
    throw new KeywrightError(
      "forward_gas_too_low",
      `The call takes about ${needed} gas; the request allows ${request.gas}.`,
      { required_gas: String(needed) },
    );
  }
}

/** The gas of the call when the owner sends it directly. @throws KeywrightError the contract's named error. */
export async function estimateAsOwner(
  rpc: RpcClient,
  minBlock: number,
  { from, to, data }: Pick<SignedForwardRequest, "from" | "to" | "data">,
): Promise<bigint> {
  try {
    const { values } = await rpc.callAt(minBlock, (at) => [
      { method: "eth_estimateGas", params: [{ from, to, data }, at] },
    ]);
    return BigInt(values[0] as string);
  } catch (error) {
    throw namedError(error);
  }
}

function requireNext(nonce: bigint, next: bigint): void {
  if (nonce === next) return;
  const what = nonce < next ? "was used already" : "comes too early";
  throw new KeywrightError("forward_nonce_used", `Nonce ${nonce} ${what}; the signer's next is ${next}.`, {
    next_nonce: String(next),
  });
}

/** `contract`: the account contract. Requests that share a transaction belong to different accounts. */
export async function forwardOutcomes(
  rpc: RpcClient,
  contract: Address,
  writes: readonly WriteRow[],
  receipt: Receipt,
): Promise<readonly [string, Outcome][]> {
  const executions = new Executions(receipt);
  const eventsOfAccount = eventsByAccount(eventsOf(receipt, contract));
  return Promise.all(
    writes.map(async (write): Promise<[string, Outcome]> => {
      const request = decodeForward(write.calldata ?? "0x");
      const succeeded = executions.of({ signer: request.from, nonce: request.nonce });
      if (succeeded === true) {
        return [write.id, { state: "done", result: resultOf(eventsOfAccount(write.account_id)), charged: true }];
      }
      const failed =
        succeeded === false
          ? await failedCall(rpc, contract, request, receipt)
          : await notExecuted(rpc, contract, request, receipt);
      const facts = {
        ...failed.error.facts,
        ...(failed.charged ? { charged: true } : {}),
        transaction_hash: receipt.transactionHash,
      };
      return [write.id, { state: "failed", error: { ...failed.error, facts }, charged: failed.charged }];
    }),
  );
}

type Failed = Pick<Outcome, "charged"> & { readonly error: SubmissionFailure };

/** A call that failed in a shared transaction is not charged. */
async function failedCall(
  rpc: RpcClient,
  contract: Address,
  request: SignedForwardRequest,
  receipt: Receipt,
): Promise<Failed> {
  return { error: await reasonOf(rpc, callOf(contract, request), receipt), charged: false };
}

/**
 * Another transaction took the nonce, the deadline passed before the block, or the call was alone in its transaction
 * and reverted with it.
 */
async function notExecuted(
  rpc: RpcClient,
  contract: Address,
  request: SignedForwardRequest,
  receipt: Receipt,
): Promise<Failed> {
  const [next, mined] = await Promise.all([
    rpc.call<string>("eth_call", [{ to: receipt.to, data: noncesCall(request.from) }, receipt.blockNumber]),
    rpc.call<{ timestamp: string } | null>("eth_getBlockByNumber", [receipt.blockNumber, false]),
  ]);
  if (BigInt(next) > BigInt(request.nonce)) return { error: nonceTaken(request, BigInt(next)), charged: false };
  // The owner chose the deadline, so the gas spent on the request is charged.
  if (mined !== null && BigInt(mined.timestamp) > BigInt(request.deadline))
    return { error: tooLate(request), charged: true };
  return { error: await reasonOf(rpc, callOf(contract, request), receipt), charged: true };
}

const callOf = (
  contract: Address,
  { from, data, gas }: SignedForwardRequest,
): { from: string; to: string; data: string; gas: string } => ({
  from,
  to: contract,
  data,
  gas: `0x${BigInt(gas).toString(16)}`,
});

const nonceTaken = ({ nonce }: SignedForwardRequest, next: bigint): SubmissionFailure => ({
  code: "forward_nonce_used",
  detail:
    `Another transaction used nonce ${nonce} before this request was mined; nothing was charged. ` +
    `The signer's next is ${next}.`,
  facts: { next_nonce: String(next) },
});

const tooLate = ({ deadline }: SignedForwardRequest): SubmissionFailure => ({
  code: "request_expired",
  detail: `The request was mined after its deadline ${deadline}, and the forwarder left it out.`,
  facts: {},
});
