/** Resolves client references: PKP numbers to addresses, usage keys to their hashes. */
import { KeywrightError } from "../../protocol/errors";
import type { ContractWrite } from "../../protocol/executor";
import type { KeyReference, PkpReference } from "../../protocol/http";
import { decodedKeyIdOf, keyIdOf, type AccountId, type KeyId, type PkpId } from "../../protocol/ids";
import type { Chain } from "../chain/types";
import type { Caller } from "../middleware/call";
import { signingWalletOf } from "./writes";

/**
 * An address that is no account's PKP: lets the contract check everything else about a write that names an unknown
 * number.
 */
const UNREGISTERED_PKP = `0x${"00".repeat(19)}01` as PkpId;

const ABOUT_THE_PKP: ReadonlySet<string> = new Set(["unknown_pkp", "not_in_group"]);

/**
 * Builds a write from PKP references. An unknown number is 404, but only after the contract has accepted the caller's
 * right to the write: 403 takes precedence over 404.
 */
export async function writeWithPkps(
  chain: Pick<Chain, "pkpByNumber" | "simulate" | "estimateAsOwner">,
  caller: Caller,
  references: readonly PkpReference[],
  build: (pkpIds: PkpId[]) => ContractWrite,
): Promise<ContractWrite> {
  const resolved = await Promise.all(references.map((reference) => pkpOf(chain, caller.accountId, reference)));
  const missing = resolved.find((one) => one instanceof KeywrightError);
  if (missing === undefined) return build(resolved as PkpId[]);
  const tried = build(resolved.map((one) => (one instanceof KeywrightError ? UNREGISTERED_PKP : one)));
  const wallet = signingWalletOf(caller);
  const trying: Promise<unknown> = wallet === undefined ? chain.simulate(tried) : chain.estimateAsOwner(tried, wallet);
  await trying.catch((error: unknown) => {
    throw error instanceof KeywrightError && ABOUT_THE_PKP.has(error.code) ? missing : error;
  });
  throw missing;
}

async function pkpOf(
  chain: Pick<Chain, "pkpByNumber">,
  accountId: AccountId,
  reference: PkpReference,
): Promise<PkpId | KeywrightError> {
  if ("address" in reference) return reference.address;
  try {
    return await chain.pkpByNumber(accountId, reference.number);
  } catch (error) {
    if (error instanceof KeywrightError && error.status === 404) return error;
    throw error;
  }
}

/** Resolves one PKP for a read, where the order of checks does not matter. */
export async function pkpAddress(
  chain: Pick<Chain, "pkpByNumber">,
  accountId: AccountId,
  reference: PkpReference,
): Promise<PkpId> {
  return "address" in reference ? reference.address : chain.pkpByNumber(accountId, reference.number);
}

/**
 * The id under which the contract knows a usage key: that of its text, unless only that of its decoded bytes is known.
 */
export async function usageKeyId(chain: Pick<Chain, "usageKey">, reference: KeyReference): Promise<KeyId> {
  if ("keyId" in reference) return reference.keyId;
  const [textId, decodedId] = [keyIdOf(reference.key), decodedKeyIdOf(reference.key)];
  if ((await chain.usageKey(textId)) !== undefined) return textId;
  return (await chain.usageKey(decodedId)) === undefined ? textId : decodedId;
}
