/**
 * From API mode to ChainSecured in one call: the new owner's wallet signs, the service submits, and the owner's client
 * for the same account comes back.
 * Source: docs/conformance.md §3, §4, §5.
 */
import { createChainSecuredClient, type ChainSecuredClient, type ChainSecuredOptions } from "./chainSecured";
import { clientOver } from "./api";
import { ClientError } from "./errors";
import { isKeyText } from "./keyText";
import type { Result } from "./operations";
import { createTransport, type CallOptions } from "./transport";
import { signEnvelope } from "./wallet";
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
 * @throws ClientError `account_chain_secured` when the account is already ChainSecured with another owner.
 */
export async function convertAccount({ apiKey, onProgress, ...options }: ConvertOptions): Promise<Converted> {
  if (!isKeyText(apiKey))
    throw new ClientError("invalid_argument", "apiKey must be 44 characters of base64, as the service gave it.");
  const client = clientOver(createTransport(options), () => ({ "x-api-key": apiKey }));
  const owner = await createChainSecuredClient({ ...options, accountId: keyIdOf(apiKey) as string as AccountId });
  const envelope = await signEnvelope(options.signer, "ConvertAccount", owner.typedDataDomain);
  await onProgress?.({ step: "signed" });
  try {
    const answer = await client.convertToChainSecuredAccount(
      { ...envelope, new_admin_wallet_address: owner.owner },
      options,
    );
    await onProgress?.({ step: "converted", transaction_hash: answer.transaction_hash });
    return { answer, owner };
  } catch (error) {
    if (error instanceof ClientError && MAY_BE_CONVERTED.has(error.code) && (await isOwned(owner)))
      return { answer: undefined, owner };
    throw error;
  }
}

/** Under a given idempotency key, a repeated conversion is signed anew, and so another request. */
const MAY_BE_CONVERTED: ReadonlySet<string> = new Set(["account_chain_secured", "idempotency_conflict"]);

async function isOwned(client: ChainSecuredClient): Promise<boolean> {
  const { owner, managed } = await client.account();
  return !managed && parseAddress(owner) === client.owner;
}
