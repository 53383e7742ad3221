/**
 * Who owns what: the account that an owner's request means when it names none, and who may become an owner. One place
 * for all ways that lead there: wallets, identities, signed mints, routes and relayed requests.
 */
import { KeywrightError } from "../protocol/errors";
import { packedAccountId, type AccountId, type Address } from "../protocol/ids";
import type { Chain } from "./chain/types";
import type { Executor } from "./executor/client";

export interface OwnAccounts {
  /** The account of the wallet's own id, else its only own one; undefined when there is none, or there are several. */
  readonly main: AccountId | undefined;
  /** Its own accounts, by its own act; not listed when `main` is the one of its own id. */
  readonly own: readonly AccountId[];
  /** Accounts that others handed over to it: used by naming them, and never meant otherwise. */
  readonly given: readonly AccountId[];
}

/**
 * The accounts that the wallet owns now. Ownership of the account of its own id is read from the contract itself; the
 * indexed events, which list the others and tell whether that one was handed back, may lag a block.
 */
export async function accountsOf(
  chain: Pick<Chain, "account" | "accountsOwnedBy" | "isGiven">,
  wallet: Address,
): Promise<OwnAccounts> {
  const packed = packedAccountId(wallet);
  const owner = (await chain.account(packed))?.owner;
  if (owner === wallet && !(await chain.isGiven(packed, wallet))) return { main: packed, own: [], given: [] };
  const owned = await chain.accountsOwnedBy(wallet);
  const own = owned.filter(({ isGiven }) => !isGiven).map(({ id }) => id);
  const given = owned.filter(({ isGiven }) => isGiven).map(({ id }) => id);
  return { main: own.length === 1 ? own[0] : undefined, own, given };
}

/** Among so many of its first entries an account was created: if found late, after what had been read before. */
const CREATED_AMONG = 100;

type Deps = {
  readonly chain: Pick<Chain, "events" | "everyPayer" | "registrationsOf">;
  readonly executor: Executor;
};

/**
 * Refuses a new owner whose key exists only in the TEE and who has not shown that it can act: nobody could ever use the
 * account again.
 * @throws KeywrightError `owner_needs_token`.
 */
export async function requireUsableOwner(
  { chain, executor }: Deps,
  wallet: Address,
  call: { readonly requestId: string },
): Promise<void> {
  const { events } = await chain.events(packedAccountId(wallet), undefined, CREATED_AMONG);
  const created = events.find(({ name }) => name === "AccountCreated");
  // Only identities have a managed account with their wallet's own id.
  if (created?.args["managed"] === true) {
    throw new KeywrightError(
      "owner_needs_token",
      `${wallet} is the wallet of an identity: send new_owner_identity_token to show that it can sign in here.`,
    );
  }
  if ((await chain.everyPayer()).includes(wallet))
    throw new KeywrightError(
      "owner_needs_token",
      `${wallet} is an API payer of this service and cannot act as an owner.`,
    );
  if (await isPkp({ chain, executor }, wallet, call)) {
    throw new KeywrightError(
      "owner_needs_token",
      `${wallet} is a PKP: it signs for actions only, so no one could act as the owner.`,
    );
  }
}

/** Anyone can register any address on chain: it is a PKP if its path leads to it, which the executor knows. */
async function isPkp(
  { chain, executor }: Deps,
  wallet: Address,
  call: { readonly requestId: string },
): Promise<boolean> {
  for (const { accountId, derivationPath } of await chain.registrationsOf(wallet)) {
    const isReal = await executor
      .call("publicKeys", { accountId, pkpId: wallet, derivationPath }, call)
      .then(() => true, isRefusal);
    if (isReal) return true;
  }
  return false;
}

function isRefusal(error: unknown): false {
  if (error instanceof KeywrightError && !error.retryable && error.status < 500) return false;
  throw error;
}
