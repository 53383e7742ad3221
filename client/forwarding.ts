/**
 * Writes that the owner signs and the service sends: the account's credit pays the gas, so the wallet needs no native
 * coin.
 */
import { isError } from "ethers";
import { FORWARD_TYPES, type ForwardDomain } from "../protocol/forwardShape";
import type { Address } from "../protocol/ids";
import { ClientError } from "./errors";
import { operations } from "./operations";
import type { OwnerProvider, OwnerSigner } from "./ownerSigner";
import type { Transport } from "./transport";
import { receiptAfter, walletErrorOf, type SendTransaction, type SendingOptions } from "./wallet";

/** Leaves time for a person to review the request and for a busy chain. */
const DEADLINE_SECONDS = 900;

export interface ForwardingParts extends SendingOptions {
  readonly signer: OwnerSigner;
  readonly transport: Transport;
  readonly provider: OwnerProvider;
  readonly domain: ForwardDomain;
}

/** Sends as forward requests through `POST /relay`. */
export function sendByService({
  signer,
  transport,
  provider,
  domain,
  confirmations = 1,
  confirmationTimeoutMs = 180_000,
  onSent,
}: ForwardingParts): SendTransaction {
  const { relay, relayNonce } = operations(["relay", "relayNonce"], transport, () => ({}));
  return async ({ to, data }) => {
    const from = (await signer.getAddress()) as Address;
    const [{ nonce }, needed] = await Promise.all([
      relayNonce({ address: from }),
      provider.estimateGas({ from, to, data }),
    ]);
    const deadline = String(Math.floor(Date.now() / 1_000) + DEADLINE_SECONDS);
    const request = { from, to, value: "0", gas: String((needed * 13n) / 10n + 20_000n), nonce, deadline, data };
    const signature = await signer.signTypedData({ ...domain }, FORWARD_TYPES, request).catch((cause: unknown) => {
      throw walletErrorOf(cause);
    });
    const { transaction_hash: hash } = await relay({ ...request, signature });
    onSent?.(hash, "service");
    const receipt = await provider
      .waitForTransaction(hash, confirmations, confirmationTimeoutMs)
      .catch((cause: unknown) => receiptAfter(cause, hash));
    if (receipt === null)
      throw new ClientError("transaction_failed", "The node gave no receipt of the service's transaction.", {
        facts: { transaction_hash: hash },
      });
    return receipt;
  };
}

/** Sends from the wallet, or through the service when the wallet's balance is too low for the gas. */
export function sendByEither(byWallet: SendTransaction, byService: SendTransaction): SendTransaction {
  return (transaction) =>
    byWallet(transaction).catch((error: unknown) => {
      const cannotPay = error instanceof ClientError && isError(error.cause, "INSUFFICIENT_FUNDS");
      if (!cannotPay) throw error;
      return byService(transaction);
    });
}
