/** Account routes: create, read, convert, hand over. */
import { KeywrightError } from "../../protocol/errors";
import type { ContractWrite } from "../../protocol/executor";
import { decodedKeyIdOf, type AccountId } from "../../protocol/ids";
import { verifyTypedData } from "../../protocol/typedData";
import type { accountRoutes as routes } from "../../protocol/http/accounts";
import type { Answer, Call, HandlersOf } from "../middleware/call";
import { requireUsableOwner } from "../ownership";
import type { RouteDeps } from "./deps";
import { attemptOf, done, secretOnce, withSecret, write, type Writes } from "./writes";

export function accountRoutes(deps: RouteDeps, writes: Writes): HandlersOf<keyof typeof routes> {
  return {
    newAccount: (call) =>
      call.presented.identityToken === undefined
        ? newAccountWithKey(deps, writes, call)
        : newAccountOfIdentity(deps, writes, call),
    accountExists: (call) => accountExists(deps, call),
    account: (call) => account(deps, call),

    updateAccount: async (call) =>
      done(
        await writes.send(
          call,
          write("updateAccountMetadata", call.caller.accountId, call.body.name, call.body.description),
        ),
      ),

    freezeAccount: async (call) =>
      done(await writes.send(call, write("setAccountFrozen", call.caller.accountId, true))),
    unfreezeAccount: async (call) =>
      done(await writes.send(call, write("setAccountFrozen", call.caller.accountId, false))),

    transferOwnership: async (call) => {
      const { write: handingOver, ...consent } = await handover(deps, call);
      return done(await writes.send(call, handingOver, consent));
    },

    convertToChainSecuredAccount: async (call) => {
      const { new_admin_wallet_address: newOwner, ...envelope } = call.body;
      const nowSeconds = Date.now() / 1000;
      const signer = verifyTypedData(envelope.typed_data, envelope.signature, {
        primaryType: "ConvertAccount",
        domain: deps.typedDataDomain,
        nowSeconds,
      });
      if (signer !== newOwner)
        throw new KeywrightError(
          "signature_mismatch",
          `the envelope is signed by ${signer}, not by new_admin_wallet_address ${newOwner}.`,
        );
      const { accountId } = call.caller;
      const written = await writes.send(call, write("convertToChainSecuredAccount", accountId, newOwner), {
        convert: envelope,
      });
      return { ...done(written), wallet_address: newOwner, api_key_hash: accountId };
    },
  };
}

/**
 * The handover of an account. Of a managed account to an identity it is a conversion, since the identity's token shows
 * its consent: the account is then the identity's own.
 */
async function handover(deps: RouteDeps, call: Call<"transferOwnership">): Promise<Handover> {
  const { new_owner_address: named, new_owner_identity_token: token } = call.body;
  const { accountId, managed } = call.caller;
  if (token === undefined) {
    if (named === undefined)
      throw new KeywrightError("invalid_body", "body: give new_owner_address or new_owner_identity_token.");
    await requireUsableOwner(deps, named, call);
    return { write: write("transferOwnership", accountId, named) };
  }
  const { walletAddress } = await deps.executor.call("ownerWallet", { token }, call);
  if (named !== undefined && named !== walletAddress) {
    throw new KeywrightError("invalid_value", `body.new_owner_address: the token is that of ${walletAddress}.`);
  }
  if (!managed) return { write: write("transferOwnership", accountId, walletAddress) };
  return { write: write("convertToChainSecuredAccount", accountId, walletAddress), convert: { token } };
}

interface Handover {
  readonly write: ContractWrite;
  readonly convert?: { readonly token: string };
}

async function newAccountWithKey(
  deps: RouteDeps,
  writes: Writes,
  call: Call<"newAccount">,
): Promise<Answer<"newAccount">> {
  const { apiKey, apiKeyHash, walletAddress } = await deps.executor.call("mintAccountKey", attemptOf(call), call);
  const minted = { secret: apiKey, hash: apiKeyHash };
  if (call.kept !== undefined) return withSecret("api_key", minted, call.kept) ?? (call.kept as Answer<"newAccount">);
  const { account_name: name, account_description: description } = call.body;
  const author = { accountId: apiKeyHash as AccountId, credential: { type: "key" as const, key: apiKey } };
  const create = write("newAccount", apiKeyHash, true, name, description, walletAddress);
  const written = await writes.sendAs(author, call, create, { pendingFacts: { api_key_hash: apiKeyHash } });
  const { api_key_hash = apiKeyHash, wallet_address = walletAddress } = written.result;
  await welcome(deps, call, api_key_hash as AccountId);
  return {
    ...done(written),
    ...secretOnce("api_key", minted, written),
    wallet_address,
    api_key_hash,
  };
}

/** For an owner who signs in with an identity provider: no key is minted, the token represents the account. */
async function newAccountOfIdentity(
  deps: RouteDeps,
  writes: Writes,
  call: Call<"newAccount">,
): Promise<Answer<"newAccount">> {
  // Asked for again, and there is no secret to give.
  if (call.kept !== undefined) return call.kept as Answer<"newAccount">;
  const token = call.presented.identityToken ?? "";
  const { walletAddress, accountId } = await deps.executor.call("ownerWallet", { token }, call);
  const { account_name: name, account_description: description } = call.body;
  const author = { accountId: accountId as AccountId, credential: { type: "identity" as const, token } };
  const written = await writes.sendAs(
    author,
    call,
    write("newAccount", accountId, true, name, description, walletAddress),
  );
  await welcome(deps, call, author.accountId);
  return { ...done(written), wallet_address: walletAddress, api_key_hash: accountId };
}

/** Like `welcome`, for an account that its owner created on chain. */
export async function grantSignup(
  { credits, log }: RouteDeps,
  { requestId }: { readonly requestId: string },
  accountId: AccountId,
): Promise<void> {
  await credits.accounts
    .grantSignupCredit(accountId)
    .catch((error: unknown) =>
      log.error({ err: error, requestId, account: accountId }, "signup credit of a new account was not stored"),
    );
}

/** Failures are only logged: the account exists, and the caller must receive the key. */
async function welcome(
  { credits, log }: RouteDeps,
  { body, requestId }: Call<"newAccount">,
  accountId: AccountId,
): Promise<void> {
  try {
    await credits.accounts.grantSignupCredit(accountId);
    if (body.email) await credits.accounts.rememberEmail(accountId, body.email);
  } catch (error) {
    log.error({ err: error, requestId, account: accountId }, "signup credit or e-mail of a new account was not stored");
  }
}

async function accountExists({ chain, executor }: RouteDeps, call: Call<"accountExists">): Promise<boolean> {
  const { key, identityToken } = call.presented;
  if (key !== undefined) return (await chain.key([key.id, decodedKeyIdOf(key.text)]))?.live ?? false;
  // To its end, also for a client that leaves: whether the token is invalid is counted.
  const { requestId } = call;
  const asked = executor.call("ownerWallet", { token: identityToken ?? "" }, { requestId });
  const { walletAddress, accountId } = await asked;
  const account = await chain.account(accountId as AccountId);
  return account?.owner === walletAddress && account.managed;
}

async function account({ chain }: RouteDeps, call: Call<"account">): Promise<Answer<"account">> {
  const found = await chain.account(call.caller.accountId);
  if (found === undefined) throw new KeywrightError("unknown_account", "There is no such account.");
  const { id, name, description, managed, owner, frozen } = found;
  const counts = {
    group_count: found.groupCount,
    wallet_count: found.pkpCount,
    action_count: found.actionCount,
    usage_api_key_count: found.usageKeyCount,
  };
  return { id, name, description, managed, owner, frozen, ...counts };
}
