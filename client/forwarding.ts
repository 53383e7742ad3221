/**
 * Writes that the owner signs and the service sends: the account's credit pays the gas, so the wallet needs no native
 * coin.
 */
import { isError } from "ethers";
import { FORWARD_TYPES, type ForwardDomain } from "../protocol/forwardShape";
import type { Address } from "../protocol/ids";
import { ClientError } from "./errors";
import { nextNonce, requireCarriedOut, requireTrusted } from "./forwardProof";
import { LAG_MS } from "./lag";
import { operations } from "./operations";
import type { OwnerProvider, OwnerSigner } from "./ownerSigner";
import type { Transport } from "./transport";
import { receiptAfter, succeeded, walletErrorOf, type SendTransaction, type SendingOptions } from "./wallet";

/** Leaves time for a person to review the request and for a busy chain. */
const DEADLINE_SECONDS = 900;

export interface ForwardingParts extends SendingOptions {
  readonly signer: OwnerSigner;
  readonly transport: Transport;
  readonly provider: OwnerProvider;
  /** As the service names it; used only if the account contract trusts this forwarder. */
  readonly domain: ForwardDomain;
  readonly lagMs?: number;
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
  lagMs = LAG_MS,
}: ForwardingParts): SendTransaction {
  const { relay, relayNonce } = operations(["relay", "relayNonce"], transport, () => ({}));
  return async ({ to, data }) => {
    if (provider.getTransaction === undefined)
      throw new ClientError("no_provider", "To check what the service sends, the provider needs `getTransaction`.");
    const from = (await signer.getAddress()) as Address;
    await requireTrusted(provider, to, domain.verifyingContract);
    const { nonce: said } = await relayNonce({ address: from });
    const nonce = await nextNonce(provider, domain.verifyingContract, { owner: from, said, withinMs: lagMs });
    const needed = await provider.estimateGas({ from, to, data });
    const deadline = String(Math.floor(Date.now() / 1_000) + DEADLINE_SECONDS);
    const request = { from, to, value: "0", gas: String((needed * 13n) / 10n + 20_000n), nonce, deadline, data };
    const signature = await signer.signTypedData({ ...domain }, FORWARD_TYPES, request).catch((cause: unknown) => {
      throw walletErrorOf(cause);
    });
    const { transaction_hash: hash } = await relay({ ...request, signature }).catch((cause: unknown) => {
      throw relayErrorOf(cause, { nonce, deadline });
    });
    onSent?.(hash, "service");
    const receipt = await provider
      .waitForTransaction(hash, confirmations, confirmationTimeoutMs)
      .catch((cause: unknown) => receiptAfter(cause, hash));
    return requireCarriedOut(succeeded(receipt, hash), { provider, domain, request, withinMs: lagMs });
  };
}

/** Without the service's last word nobody knows whether it sends the call, which it may do until the deadline. */
function relayErrorOf(cause: unknown, facts: { nonce: string; deadline: string }): unknown {
  if (!(cause instanceof ClientError)) return cause;
  if (!LOST.has(cause.code) && cause.facts["may_have_taken_effect"] !== true) return cause;
  return new ClientError(
    "transaction_failed",
    "The service gave no final answer: it may have sent the call, or send it until the deadline. Before trying " +
      "again, look whether the change is there: then the owner's nonce at the forwarder has passed this one.",
    { cause, facts: { ...cause.facts, ...facts } },
  );
}
const LOST: ReadonlySet<string> = new Set([
  ...["network_failed", "client_timed_out", "aborted", "unexpected_answer"],
  // The service's: it may still send, or an earlier attempt of the same request may have.
  ...["submission_pending", "timed_out", "not_ready", "idempotency_in_progress"],
]);

/** Sends from the wallet, or through the service when the wallet's balance is too low for the gas. */
export function sendByEither(byWallet: SendTransaction, byService: SendTransaction): SendTransaction {
  return (transaction) =>
    byWallet(transaction).catch((error: unknown) => {
      const cannotPay = error instanceof ClientError && isError(error.cause, "INSUFFICIENT_FUNDS");
      if (!cannotPay) throw error;
      return byService(transaction);
    });
}
