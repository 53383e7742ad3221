/**
 * What each credential may have signed. A payer's signature can change any managed account, so it is given only for
 * writes about the account or key whose secret was presented; the contract decides everything else.
 */
import { KeywrightError } from "../../protocol/errors";
import type { AccountId, Address, DerivationPath, Hash32 } from "../../protocol/ids";
import type { Caller } from "../access/callers";
import { addressIn, flagIn, wordOf, type EncodedWrite } from "./calldata";

/**
 * Facts the rules need: the account that an id acts for, the address of a derivation path, and the new owner who agreed
 * to a conversion.
 */
export interface RuleFacts {
  accountOf(id: Hash32): AccountId;
  /** Whether an id is, or was, that of a usage key. */
  isUsageKey(id: Hash32): boolean;
  addressAt(account: AccountId, path: DerivationPath): Address;
  /** @throws KeywrightError when the consent is missing or its signature is invalid. */
  consentingOwner(): Address;
  /** The new owner is an identity: the account is handed over to it by whoever owns the account. */
  readonly isHandover: boolean;
}

type Rule = (write: EncodedWrite, caller: Caller, facts: RuleFacts) => void;

/**
 * Argument 0 must be a hash of the presented credential: a caller can only name accounts or keys whose secret it holds.
 */
const ownIdOnly: Rule = (write, { ids }) => {
  const id = wordOf(write, 0);
  if (!(ids as readonly string[]).includes(id)) {
    throw refuse(`${write.functionName} is about ${id}, which is not the hash of the credential that came with it.`);
  }
};

/**
 * A new account is managed, with the id and owner of the presented key (or verified identity). Under the id of a usage
 * key, whose text only can be presented as a key, it would come before that key and so take it from its account for
 * ever. An identity's id is public: anybody could set a key under it.
 */
const ownNewAccount: Rule = (write, caller, facts) => {
  const [id, isManaged, owner] = [wordOf(write, 0), flagIn(write, 1), addressIn(write, 4)];
  if (id !== caller.ids[0] || owner !== caller.wallet() || !isManaged) {
    throw refuse("A new account must be managed and have the id and owner of the credential that came with it.");
  }
  if (caller.type === "key" && facts.isUsageKey(id))
    throw new KeywrightError("key_id_taken", "A usage key has the id of this new account.");
};

/**
 * The new owner must have agreed. An identity is not an account key, so it cannot convert for a wallet that signed; it
 * can hand its account over to another identity.
 */
const agreedConversion: Rule = (write, caller, facts) => {
  if (caller.type !== "key" && !facts.isHandover)
    throw new KeywrightError(
      "owner_only",
      "A conversion needs the account key; an identity token does not stand for it here.",
    );
  ownIdOnly(write, caller, facts);
  if (facts.consentingOwner() !== addressIn(write, 1))
    throw refuse("The conversion names another new owner than the one who agreed to it.");
};

/** The arguments of registerWalletDerivation; `id` is an account or a usage key. */
export const registrationIn = (
  write: EncodedWrite,
): { readonly id: Hash32; readonly address: Address; readonly path: DerivationPath } => ({
  id: wordOf(write, 0),
  address: addressIn(write, 1),
  path: wordOf(write, 2) as DerivationPath,
});

/**
 * The registered address must be the one the path derives to, so that a caller cannot claim the address of another's
 * PKP.
 */
const derivedWallet: Rule = (write, caller, facts) => {
  ownIdOnly(write, caller, facts);
  const { id, address, path } = registrationIn(write);
  if (facts.addressAt(facts.accountOf(id), path) !== address) {
    throw new KeywrightError("invalid_value", `Derivation path ${path} does not lead to ${address}.`);
  }
};

/** Every write that a payer may sign; all other functions are refused. */
export const WRITE_RULES: Readonly<Record<string, Rule>> = {
  newAccount: ownNewAccount,
  convertToChainSecuredAccount: agreedConversion,
  registerWalletDerivation: derivedWallet,
  transferOwnership: ownIdOnly,
  updateAccountMetadata: ownIdOnly,
  setUsageApiKey: ownIdOnly,
  updateUsageApiKeyMetadata: ownIdOnly,
  removeUsageApiKey: ownIdOnly,
  revokeAllUsageApiKeys: ownIdOnly,
  setAccountFrozen: ownIdOnly,
  setPkpOps: ownIdOnly,
  updatePkpMetadata: ownIdOnly,
  addGroup: ownIdOnly,
  updateGroup: ownIdOnly,
  updateGroupMetadata: ownIdOnly,
  removeGroup: ownIdOnly,
  changeGroupMembers: ownIdOnly,
  addActionToGroup: ownIdOnly,
  removeActionFromGroup: ownIdOnly,
  addPkpToGroup: ownIdOnly,
  removePkpFromGroup: ownIdOnly,
  addAction: ownIdOnly,
  removeAction: ownIdOnly,
  updateActionMetadata: ownIdOnly,
};

/** @throws KeywrightError `not_authorized`, `owner_only`, `invalid_value`, `typed_data_…`, `signature_…`. */
export function requireAllowed(write: EncodedWrite, caller: Caller, facts: RuleFacts): void {
  ruleOf(write.functionName)(write, caller, facts);
}

/** @throws KeywrightError `not_authorized` for a function no payer signs. */
export function ruleOf(functionName: string): Rule {
  const rule = Object.hasOwn(WRITE_RULES, functionName) ? WRITE_RULES[functionName] : undefined;
  if (rule === undefined) throw refuse(`${functionName.slice(0, 64)} is no write that a payer signs.`);
  return rule;
}

function refuse(detail: string): KeywrightError {
  return new KeywrightError("not_authorized", detail);
}
