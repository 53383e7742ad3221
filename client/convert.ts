/**
 * From API mode to ChainSecured in one call: the new owner's wallet signs, the service submits, and the owner's client
 * for the same account comes back.
 * Source: docs/conformance.md §3, §4, §5.
 */
import { createChainSecuredClient, type ChainSecuredClient, type ChainSecuredOptions } from "./chainSecured";
import { clientOver } from "./api";
import { ClientError } from "./errors";
import { isKeyText } from "./keyText";
import { LAG_MS, readUntil } from "./lag";
import type { Result } from "./operations";
import { createTransport, type CallOptions } from "./transport";
import { receiptAfter, signEnvelope, succeeded } from "./wallet";
import { keyIdOf, parseAddress, type AccountId } from "../protocol/ids";

export type ConvertProgress =
  { readonly step: "signed" } | { readonly step: "converted"; readonly transaction_hash: string };

export interface ConvertOptions extends Omit<ChainSecuredOptions, "owner" | "accountId" | "send">, CallOptions {
  /** The account key; it stops being a credential once converted. */
  readonly apiKey: string;
  readonly onProgress?: (progress: ConvertProgress) => void | Promise<void>;
}

export interface Converted {
  /**
   * Undefined when the account had been converted to this wallet before, for example by a call whose answer was lost.
   */
  readonly answer: Result<"convertToChainSecuredAccount"> | undefined;
  readonly owner: ChainSecuredClient;
}

/**
 * Makes `signer` the owner of the account whose key is given. Irreversible. Safe to repeat after a lost answer: an
 * account that this wallet owns already is not converted again.
 * @throws ClientError `account_chain_secured` when the account is already ChainSecured with another owner;
 * `transaction_failed` or `client_timed_out` with its `transaction_hash` when the wallet's provider does not show the
 * conversion that the service reports.
 */
export async function convertAccount({ apiKey, onProgress, ...options }: ConvertOptions): Promise<Converted> {
  if (!isKeyText(apiKey))
    throw new ClientError("invalid_argument", "apiKey must be 44 characters of base64, as the service gave it.");
  const client = clientOver(createTransport(options), () => ({ "x-api-key": apiKey }));
  const owner = await createChainSecuredClient({ ...options, accountId: keyIdOf(apiKey) as string as AccountId });
  const envelope = await signEnvelope(options.signer, "ConvertAccount", owner.typedDataDomain);
  await onProgress?.({ step: "signed" });
  let answer: NonNullable<Converted["answer"]>;
  try {
    answer = await client.convertToChainSecuredAccount({ ...envelope, new_admin_wallet_address: owner.owner }, options);
  } catch (error) {
    if (error instanceof ClientError && mayBeConverted(error) && (await isOwned(owner).catch(() => false)))
      return { answer: undefined, owner };
    throw error;
  }
  await requireConverted(owner, answer.transaction_hash, options);
  await onProgress?.({ step: "converted", transaction_hash: answer.transaction_hash });
  return { answer, owner };
}

/**
 * Under a given idempotency key, a repeated conversion is signed anew, and so another request. Without an answer, it
 * may have taken effect.
 */
const MAY_BE_CONVERTED: ReadonlySet<string> = new Set([
  ...["account_chain_secured", "idempotency_conflict"],
  ...["client_timed_out", "network_failed"],
]);

const mayBeConverted = ({ code, facts }: ClientError): boolean =>
  MAY_BE_CONVERTED.has(code) || facts["may_have_taken_effect"] === true;

/** The service's word is no proof: the wallet's provider must show the transaction, and the account as the wallet's. */
async function requireConverted(
  owner: ChainSecuredClient,
  hash: string,
  { provider, signer, confirmations = 1, confirmationTimeoutMs = 180_000 }: Omit<ConvertOptions, "apiKey">,
): Promise<void> {
  const receipt = await (provider ?? signer.provider)
    ?.waitForTransaction(hash, confirmations, confirmationTimeoutMs)
    .catch((cause: unknown) => receiptAfter(cause, hash));
  succeeded(receipt ?? null, hash);
  const shown = await readUntil(
    () => isOwned(owner).catch(() => false),
    (isShown) => isShown,
    Math.min(confirmationTimeoutMs, LAG_MS),
  );
  if (shown) return;
  throw new ClientError(
    "transaction_failed",
    "The service named a transaction, and the chain does not show the account as the wallet's: it is not known to " +
      "be converted.",
    { facts: { transaction_hash: hash } },
  );
}

async function isOwned(client: ChainSecuredClient): Promise<boolean> {
  const { owner, managed } = await client.account();
  return !managed && parseAddress(owner) === client.owner;
}
