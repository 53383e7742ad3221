/** From what a client wrote to what the contract knows: PKP numbers to addresses, usage keys to their hashes. */
import { KeywrightError } from "../../protocol/errors";
import type { ContractWrite } from "../../protocol/executor";
import type { KeyReference, PkpReference } from "../../protocol/http";
import { decodedKeyIdOf, keyIdOf, type AccountId, type KeyId, type PkpId } from "../../protocol/ids";
import type { Chain } from "../chain/types";

/** An address that is no PKP of anybody: lets the contract judge everything else about a write that names an unknown number. */
const NOBODYS_PKP = `0x${"00".repeat(19)}01` as PkpId;

const ABOUT_THE_PKP: ReadonlySet<string> = new Set(["unknown_pkp", "not_in_group"]);

/**
 * Builds a write from PKP references. A number the account does not have is 404, but only after the contract had nothing to say about the
 * caller's right to the write: 403 comes before 404.
 */
export async function writeWithPkps(
  chain: Pick<Chain, "pkpByNumber" | "simulate">,
  accountId: AccountId,
  references: readonly PkpReference[],
  build: (pkpIds: PkpId[]) => ContractWrite,
): Promise<ContractWrite> {
  const resolved = await Promise.all(references.map((reference) => pkpOf(chain, accountId, reference)));
  const missing = resolved.find((one) => one instanceof KeywrightError);
  if (missing === undefined) return build(resolved as PkpId[]);
  await chain.simulate(build(resolved.map((one) => (one instanceof KeywrightError ? NOBODYS_PKP : one)))).catch((error: unknown) => {
    throw error instanceof KeywrightError && ABOUT_THE_PKP.has(error.code) ? missing : error;
  });
  throw missing;
}

async function pkpOf(chain: Pick<Chain, "pkpByNumber">, accountId: AccountId, reference: PkpReference): Promise<PkpId | KeywrightError> {
  if ("address" in reference) return reference.address;
  try {
    return await chain.pkpByNumber(accountId, reference.number);
  } catch (error) {
    if (error instanceof KeywrightError && error.status === 404) return error;
    throw error;
  }
}

/** One PKP where nothing is written, so that order of checks does not matter. */
export async function pkpAddress(chain: Pick<Chain, "pkpByNumber">, accountId: AccountId, reference: PkpReference): Promise<PkpId> {
  return "address" in reference ? reference.address : chain.pkpByNumber(accountId, reference.number);
}

/** The id under which the contract knows a usage key: the text form's, unless only the decoded form's is known. */
export async function usageKeyId(chain: Pick<Chain, "usageKey">, reference: KeyReference): Promise<KeyId> {
  if ("keyId" in reference) return reference.keyId;
  const [textId, decodedId] = [keyIdOf(reference.key), decodedKeyIdOf(reference.key)];
  if ((await chain.usageKey(textId)) !== undefined) return textId;
  return (await chain.usageKey(decodedId)) === undefined ? textId : decodedId;
}
