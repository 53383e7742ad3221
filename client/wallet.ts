/** The owner's wallet: signs typed data; simulates, sends and awaits transactions. Works with any ethers signer. */
import { isError } from "ethers";
import type { Address } from "../protocol/ids";
import { buildTypedData, type PrimaryType, type TypedData, type TypedDataDomain } from "../protocol/typedDataShape";
import { contractErrorOf } from "./contract";
import { ClientError } from "./errors";
import type { OwnerProvider, OwnerSigner, Receipt, TypedDataSigner } from "./ownerSigner";
import type { OwnerTransaction } from "./safe";

/** A typed-data envelope for the signature routes. */
export interface SignedEnvelope {
  readonly typed_data: TypedData;
  readonly signature: string;
}

/** Signs the canonical envelope for one endpoint with the present time. */
export async function signEnvelope(
  signer: TypedDataSigner,
  primaryType: PrimaryType,
  domain: TypedDataDomain,
): Promise<SignedEnvelope> {
  const address = (await signer.getAddress()) as Address;
  const typedData = buildTypedData(primaryType, domain, address, Math.floor(Date.now() / 1000));
  const fields = typedData.types[primaryType] ?? [];
  try {
    const signature = await signer.signTypedData(typedData.domain, { [primaryType]: [...fields] }, typedData.message);
    return { typed_data: typedData, signature };
  } catch (cause) {
    throw walletErrorOf(cause);
  }
}

/** Sends one transaction as the account's owner and resolves when it is on chain. */
export type SendTransaction = (transaction: OwnerTransaction) => Promise<Receipt>;

export interface SendingOptions {
  /** Confirmations to wait for, the transaction's own block included. Default 1. */
  readonly confirmations?: number;
  /** How long to wait for them. Default 180,000 ms. */
  readonly confirmationTimeoutMs?: number;
  /** Called once a transaction has been sent, with the payer of its gas. The wallet's own is not mined yet by then. */
  readonly onSent?: (transactionHash: string, paidBy: "wallet" | "service") => void;
}

/** Sends from the signer's own wallet. */
export function sendWith(
  signer: OwnerSigner,
  chainId: bigint,
  { confirmations = 1, confirmationTimeoutMs = 180_000, onSent }: SendingOptions,
): SendTransaction {
  let lastMined: number | undefined;
  return async ({ to, data }) => {
    const nonce = await nonceAfter(signer, lastMined).catch((cause: unknown) => {
      throw walletErrorOf(cause);
    });
    // With the chain's id, since the wallet may have changed to another one meanwhile.
    const sent = await signer.sendTransaction({ to, data, chainId, ...nonce }).catch((cause: unknown) => {
      throw sendingErrorOf(cause);
    });
    onSent?.(sent.hash, "wallet");
    const receipt = await sent
      .wait(confirmations, confirmationTimeoutMs)
      .catch((cause: unknown) => receiptAfter(cause, sent.hash));
    lastMined = sent.nonce;
    return succeeded(receipt, sent.hash);
  };
}

/** Not every wallet and provider refuses the receipt of a transaction that reverted. */
export function succeeded(receipt: Receipt | null, hash: string): Receipt {
  if (receipt !== null && receipt.status !== 0) return receipt;
  throw new ClientError(
    "transaction_failed",
    receipt === null ? "The wallet's provider gave no receipt." : "The transaction is on chain and was reverted.",
    { facts: { transaction_hash: receipt?.hash ?? hash } },
  );
}

/** How the transaction may have arrived although the wallet gave an error; codes of Node.js and of ethers. */
const NO_ANSWER = /^(E[A-Z]+|NETWORK_ERROR|SERVER_ERROR|TIMEOUT|CANCELLED)$/;

/** Whether the wallet's node may have taken the transaction that it gave this error for. */
export const isUnanswered = (cause: unknown): boolean => {
  const { code } = Object(cause) as { code?: unknown };
  return typeof code === "string" && NO_ANSWER.test(code);
};

/** An error of sending. What may have been sent is not to be sent again before somebody has looked. */
export function sendingErrorOf(cause: unknown): ClientError {
  const error = walletErrorOf(cause);
  if (cause instanceof ClientError) return error;
  const { info } = Object(cause) as { info?: { sendTransactionHash?: unknown } | null };
  const hash = info?.sendTransactionHash;
  if (typeof hash !== "string" && !isUnanswered(cause)) return error;
  return new ClientError(
    "transaction_failed",
    "The wallet's node gave no answer: the transaction may have been sent. Look at the wallet's transactions before " +
      "sending again.",
    { cause, facts: typeof hash === "string" ? { transaction_hash: hash } : {} },
  );
}

/**
 * A provider may answer from a cache or a lagging node: skip a nonce known to be used. Otherwise the wallet chooses.
 */
async function nonceAfter(signer: OwnerSigner, lastMined: number | undefined): Promise<{ nonce?: number }> {
  if (lastMined === undefined || (await signer.getNonce("pending")) > lastMined) return {};
  return { nonce: lastMined + 1 };
}

/**
 * A transaction that the user sped up is the same write under another hash; any other error means failed or unknown.
 */
export function receiptAfter(cause: unknown, hash: string): Receipt {
  const facts = { transaction_hash: hash };
  if (isError(cause, "TRANSACTION_REPLACED") && !cause.cancelled) return cause.receipt;
  if (isError(cause, "TRANSACTION_REPLACED"))
    throw new ClientError("wallet_declined", "The transaction was cancelled in the wallet.", { cause, facts });
  if (isError(cause, "TIMEOUT")) {
    throw new ClientError(
      "client_timed_out",
      "The transaction was sent and is not on chain yet: look for its hash before sending again.",
      { cause, facts },
    );
  }
  throw (
    contractErrorOf(cause) ??
    new ClientError("transaction_failed", "The transaction reverted, or its receipt could not be read.", {
      cause,
      facts,
    })
  );
}

/** After a change, ethers' BrowserProvider on "any" network gives the chain before it once more. */
export async function chainOf(provider: OwnerProvider): Promise<bigint> {
  try {
    await provider.getNetwork();
    return (await provider.getNetwork()).chainId;
  } catch (cause) {
    throw walletErrorOf(cause);
  }
}

/**
 * Simulates a write: throws the contract's revert under its error code before anything is paid or signed. The chain is
 * asked each time: a browser's wallet may have changed to another one.
 */
export async function tryWrite(
  provider: OwnerProvider,
  expected: bigint,
  owner: Address,
  { to, data }: OwnerTransaction,
): Promise<void> {
  try {
    const chainId = await chainOf(provider);
    if (chainId !== expected)
      throw new ClientError("wrong_chain", `The wallet is now on chain ${chainId}, the service on chain ${expected}.`);
    await provider.call({ from: owner, to, data });
  } catch (cause) {
    throw walletErrorOf(cause);
  }
}

export interface WriteEstimate {
  readonly gas: bigint;
  /** The current gas price in wei; undefined when the node does not report one. */
  readonly priceWei: bigint | undefined;
}

export async function estimateWrite(
  provider: OwnerProvider,
  owner: Address,
  { to, data }: OwnerTransaction,
): Promise<WriteEstimate> {
  try {
    const [gas, fees] = await Promise.all([provider.estimateGas({ from: owner, to, data }), provider.getFeeData()]);
    return { gas, priceWei: fees.gasPrice ?? fees.maxFeePerGas ?? undefined };
  } catch (cause) {
    throw walletErrorOf(cause);
  }
}

/** An error of a wallet or node as the SDK's. */
export function walletErrorOf(cause: unknown): ClientError {
  if (cause instanceof ClientError) return cause;
  const refusal = contractErrorOf(cause);
  if (refusal !== undefined) return refusal;
  if (isError(cause, "ACTION_REJECTED"))
    return new ClientError("wallet_declined", "The wallet's user declined.", { cause });
  if (isError(cause, "INSUFFICIENT_FUNDS"))
    return new ClientError("transaction_failed", "The wallet has too little of the chain's token to pay for gas.", {
      cause,
    });
  // What ethers throws for a provider that was made for one network.
  if (isError(cause, "NETWORK_ERROR") && cause.event === "changed")
    return new ClientError("wrong_chain", "The wallet has changed to another chain: connect it anew.", { cause });
  if (isError(cause, "NETWORK_ERROR") || isError(cause, "SERVER_ERROR") || isError(cause, "TIMEOUT")) {
    return new ClientError("network_failed", "The wallet's node could not be reached.", { cause, retryable: true });
  }
  return new ClientError("transaction_failed", "The wallet or its node refused the transaction.", { cause });
}
