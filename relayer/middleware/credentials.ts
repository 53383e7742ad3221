/**
 * Authenticates the caller. The format of a credential is checked before any hashing; the account behind it is looked
 * up on chain (and, for identity tokens, by the executor). Authorization is up to contract and executor.
 */
import { LRUCache } from "lru-cache";
import type { AuthKind } from "../../protocol/http";
import { KeywrightError } from "../../protocol/errors";
import {
  decodedKeyIdOf,
  keyIdOf,
  packedAccountId,
  parseApiKey,
  parseHash32,
  type AccountId,
  type Address,
  type KeyId,
} from "../../protocol/ids";
import { claimedTypedData, requireSignature, type TypedDataDomain } from "../../protocol/typedData";
import type { KeyState } from "../../protocol/keyState";
import type { AccountView, Chain } from "../chain/types";
import type { Executor } from "../executor/client";
import { accountsOf } from "../ownership";
import type { Caller, Presented, PresentedKey } from "./call";
import type { RelayerContext } from "./context";

export interface CredentialDeps {
  readonly chain: Pick<Chain, "key" | "account" | "accountsOwnedBy" | "isGiven" | "isValidSignature">;
  readonly executor: Executor;
  readonly typedDataDomain: TypedDataDomain;
}

const TAKES_KEY: ReadonlySet<AuthKind> = new Set([
  "wellFormedKey",
  "anyKey",
  "ownerKey",
  "accountKey",
  "keyOrWallet",
  "ownerOrWallet",
  "optionalKey",
]);
const TAKES_TOKEN: ReadonlySet<AuthKind> = new Set(["identityOptional", ...TAKES_KEY]);
const TAKES_WALLET: ReadonlySet<AuthKind> = new Set(["keyOrWallet", "ownerOrWallet"]);
/** Kinds for which credentials are not looked up here: the route's handler does so where needed. */
const NOT_LOOKED_UP: ReadonlySet<AuthKind> = new Set(["none", "stripe", "identityOptional", "wellFormedKey"]);
const OPTIONAL: ReadonlySet<AuthKind> = new Set(["none", "stripe", "identityOptional", "optionalKey"]);

/** The credentials of a request that this route accepts: at most one, well-formed. */
export function presentedCredentials(ctx: RelayerContext, auth: AuthKind): Presented {
  const key = TAKES_KEY.has(auth) ? keyHeader(ctx) : undefined;
  // Generated clients send their one credential in every header that the description names.
  const other = (name: string): string | undefined => (header(ctx, name) === key ? undefined : header(ctx, name));
  const identityToken = TAKES_TOKEN.has(auth) ? other("X-Identity-Token") : undefined;
  const walletAuth = TAKES_WALLET.has(auth) ? other("X-Wallet-Auth") : undefined;
  const given = [key, identityToken, walletAuth].filter((one) => one !== undefined).length;
  if (given > 1)
    throw new KeywrightError("conflicting_credentials", "Send one of a key, X-Identity-Token and X-Wallet-Auth.");
  if (given === 0 && !OPTIONAL.has(auth))
    throw new KeywrightError("missing_credential", "Send a key as X-Api-Key or Authorization: Bearer.");
  return {
    ...(key === undefined ? {} : { key: presentedKey(key) }),
    ...(identityToken === undefined ? {} : { identityToken, ...pickedAccount(ctx) }),
    ...(walletAuth === undefined ? {} : { walletAuth, ...pickedAccount(ctx) }),
  };
}

const header = (ctx: RelayerContext, name: string): string | undefined => ctx.get(name) || undefined;

function keyHeader(ctx: RelayerContext): string | undefined {
  const bearer = /^Bearer +(.*)$/i.exec(ctx.get("Authorization"))?.[1]?.trim();
  const plain = header(ctx, "X-Api-Key");
  if (bearer !== undefined && plain !== undefined && bearer !== plain) {
    throw new KeywrightError("conflicting_credentials", "Authorization and X-Api-Key carry different keys.");
  }
  return bearer ?? plain;
}

function presentedKey(given: string): PresentedKey {
  const text = parseApiKey(given);
  if (text === undefined)
    throw new KeywrightError("malformed_key", "A key is 32 bytes in standard base64: 44 characters ending in =.");
  return { text, id: keyIdOf(text) };
}

function pickedAccount(ctx: RelayerContext): { account?: AccountId } {
  const text = header(ctx, "X-Account");
  if (text === undefined) return {};
  const account = parseHash32(text) as AccountId | undefined;
  if (account === undefined) throw new KeywrightError("invalid_value", "X-Account: must be 0x and 64 hex digits");
  return { account };
}

const MAX_REMEMBERED = 10_000;

export interface Identity {
  /**
   * The caller as the contract last described this key: a guess that must not be relied on until `caller` confirms it.
   */
  readonly remembered: Caller | undefined;
  /** Looks the caller up, once; undefined where none is required and none was sent. */
  caller(): Promise<Caller | undefined>;
}

/** A caller without its secret. */
type Role = Omit<Caller, "key" | "credential">;

const withKey = (role: Role, { text: key }: PresentedKey): Caller => ({
  ...role,
  key,
  credential: { type: "key", key },
});

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => (asked ??= ask());
}

export class Authentication {
  readonly #remembered = new LRUCache<KeyId, Role>({ max: MAX_REMEMBERED });
  readonly #deps: CredentialDeps;

  constructor(deps: CredentialDeps) {
    this.#deps = deps;
  }

  /** Nothing was sent, or a key that was valid the last time. */
  isFamiliar(auth: AuthKind, { key, identityToken, walletAuth }: Presented): boolean {
    if (auth === "none" || auth === "stripe") return true;
    if (key !== undefined) return this.#remembered.has(key.id);
    return identityToken === undefined && walletAuth === undefined;
  }

  /** Resolves the caller of a credential. */
  identify(auth: AuthKind, presented: Presented, requestId: string): Identity {
    const { key } = presented;
    if (key === undefined || NOT_LOOKED_UP.has(auth))
      return { remembered: undefined, caller: once(() => this.#callerOf(auth, presented, requestId)) };
    const role = this.#remembered.get(key.id);
    return { remembered: role && withKey(role, key), caller: once(() => this.#byKey(key)) };
  }

  /** The caller behind a key whose state the executor has just returned. */
  learn(key: PresentedKey, state: KeyState): Caller {
    const role = roleOf(state);
    this.#remembered.set(key.id, role);
    return withKey(role, key);
  }

  forget(key: PresentedKey): void {
    this.#remembered.delete(key.id);
  }

  async #callerOf(auth: AuthKind, presented: Presented, requestId: string): Promise<Caller | undefined> {
    if (NOT_LOOKED_UP.has(auth)) return undefined;
    if (presented.identityToken !== undefined)
      return this.#byToken(presented.identityToken, presented.account, requestId);
    if (presented.walletAuth !== undefined) return this.#byWallet(presented.walletAuth, presented.account);
    return undefined;
  }

  async #byKey(key: PresentedKey): Promise<Caller> {
    const state = await this.#stateOf(key);
    this.#remembered.delete(key.id);
    if (state === undefined) throw unknownKey();
    if (!state.isAccountKey && !state.live)
      throw state.expiresAtSeconds > 0n ? new KeywrightError("key_expired", "This key has expired.") : unknownKey();
    return this.learn(key, state);
  }

  /**
   * Keys made by this service are identified by the hash of their text; keys identified by their bytes are the
   * exception. Unknown keys cost one round trip.
   */
  async #stateOf({ text, id }: PresentedKey): Promise<KeyState | undefined> {
    const { chain } = this.#deps;
    if (!this.#remembered.has(id)) return chain.key([id, decodedKeyIdOf(text)]);
    return (await chain.key([id])) ?? chain.key([decodedKeyIdOf(text)]);
  }

  /**
   * The owner signed in with an identity provider: owns the account of the wallet's own id, or one handed over to the
   * identity. Where that account is ChainSecured, the executor signs for the wallet.
   */
  async #byToken(token: string, picked: AccountId | undefined, requestId: string): Promise<Caller> {
    const { walletAddress, accountId } = await this.#deps.executor.call("ownerWallet", { token }, { requestId });
    const wallet = walletAddress as Address;
    const credential = { type: "identity", token } as const;
    const account = picked === undefined ? await this.#accountOfIdentity(wallet) : await this.#ownedBy(wallet, picked);
    if (account !== undefined)
      return ownerOf(account.id, { managed: account.managed, retired: false, credential, identityWallet: wallet });
    if (picked !== undefined)
      throw new KeywrightError("account_not_owned", "The identity does not own the account named in X-Account.");
    const former = await this.#deps.chain.account(accountId as AccountId);
    if (former === undefined)
      throw new KeywrightError(
        "account_not_found",
        "This identity has no account of its own yet: create one with POST /new_account and the token, or name " +
          "one that was handed over to it in X-Account.",
      );
    return ownerOf(former.id, { managed: former.managed, retired: true, credential });
  }

  /** Its main account. One that was handed over to it without its token has to be named. */
  async #accountOfIdentity(wallet: Address): Promise<AccountView | undefined> {
    const { main, own, given } = await accountsOf(this.#deps.chain, wallet);
    if (main !== undefined) return this.#ownedBy(wallet, main);
    // With gifts only, it can still create an account, unless its own id is among them.
    if (own.length === 0 && !given.includes(packedAccountId(wallet))) return undefined;
    throw notNamed("identity", own, given);
  }

  /** Ownership is read from the contract itself. */
  async #byWallet(encoded: string, picked: AccountId | undefined): Promise<Caller> {
    const { wallet, digest, signature, refusal } = this.#signedBy(encoded);
    if (refusal !== undefined && !(await this.#isSignedByOwner(picked, { wallet, digest, signature }))) throw refusal;
    const account = picked === undefined ? await this.#mainAccountOf(wallet) : await this.#ownedBy(wallet, picked);
    if (account !== undefined) return ownerOf(account.id, { managed: account.managed, retired: false, wallet });
    if (picked === undefined) throw new KeywrightError("account_not_found", `${wallet} owns no account.`);
    throw new KeywrightError("account_not_owned", `${wallet} does not own the account named in X-Account.`);
  }

  /**
   * The wallet's main account. One that was given to it is never the default, and one of several must be named:
   * otherwise the wallet could pay into an account that others spend from.
   */
  async #mainAccountOf(wallet: Address): Promise<AccountView | undefined> {
    const { main, own, given } = await accountsOf(this.#deps.chain, wallet);
    if (main !== undefined) return this.#ownedBy(wallet, main);
    if (own.length + given.length === 0) return undefined;
    throw notNamed("wallet", own, given);
  }

  async #ownedBy(wallet: Address, id: AccountId): Promise<AccountView | undefined> {
    const account = await this.#deps.chain.account(id);
    return account?.owner === wallet ? account : undefined;
  }

  /** An owner that is a contract signs as ERC-1271 says; it is asked only where it owns the account that is named. */
  async #isSignedByOwner(
    picked: AccountId | undefined,
    { wallet, digest, signature }: Pick<Signed, "wallet" | "digest" | "signature">,
  ): Promise<boolean> {
    if (picked === undefined || typeof signature !== "string" || !CONTRACT_SIGNATURE.test(signature)) return false;
    if ((await this.#ownedBy(wallet, picked)) === undefined) return false;
    return this.#deps.chain.isValidSignature(wallet, digest, signature);
  }

  /** Throws `invalid_wallet_auth` for anything but an envelope that only lacks the wallet's signature. */
  #signedBy(encoded: string): Signed {
    try {
      const { typed_data: typedData, signature } = decodeWalletAuth(encoded);
      const { address: wallet, digest } = claimedTypedData(typedData, {
        primaryType: "BillingAuth",
        domain: this.#deps.typedDataDomain,
        nowSeconds: Date.now() / 1000,
      });
      return { wallet, digest, signature, refusal: refusalOf(() => requireSignature(digest, signature, wallet)) };
    } catch (error) {
      throw invalidWalletAuth(error);
    }
  }
}

/** Who is said to have signed, and why a wallet has not. */
interface Signed {
  readonly wallet: Address;
  readonly digest: string;
  readonly signature: unknown;
  readonly refusal: KeywrightError | undefined;
}

/** Of as many owners as a header has room for; a signature that was stored on chain is empty. */
const CONTRACT_SIGNATURE = /^0x(?:[0-9a-fA-F]{2}){0,4096}$/;

function refusalOf(check: () => void): KeywrightError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return invalidWalletAuth(error);
  }
}

function invalidWalletAuth(error: unknown): KeywrightError {
  const isNamed = error instanceof KeywrightError;
  const why = isNamed ? error.detail : "it must be base64 of JSON {typed_data, signature}.";
  return new KeywrightError("invalid_wallet_auth", `X-Wallet-Auth: ${why}`, isNamed ? { reason: error.code } : {});
}

const unknownKey = (): KeywrightError =>
  new KeywrightError("unknown_key", "This key is unknown here or has been revoked.");

const notNamed = (who: "wallet" | "identity", own: readonly AccountId[], given: readonly AccountId[]): KeywrightError =>
  new KeywrightError(
    "account_not_named",
    own.length === 0
      ? `Name the account in X-Account: this ${who} has none of its own, only what others gave to it.`
      : `Name the account in X-Account: this ${who} owns several.`,
    { accounts: [...own, ...given], given },
  );

const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

function decodeWalletAuth(encoded: string): { typed_data?: unknown; signature?: unknown } {
  if (!BASE64.test(encoded)) throw new SyntaxError("not base64");
  const value: unknown = JSON.parse(Buffer.from(encoded, "base64").toString("utf8"));
  if (typeof value !== "object" || value === null) throw new SyntaxError("not an object");
  return value;
}

function roleOf(state: KeyState): Role {
  const { accountId, managed, keyId, capCents } = state;
  if (state.isAccountKey) return ownerOf(accountId, { managed, retired: !state.live });
  return {
    accountId,
    isOwner: false,
    actorId: keyId,
    keyId,
    managed,
    retired: false,
    ...(capCents === 0n ? {} : { capCents: Number(capCents) }),
  };
}

const ownerOf = (
  accountId: AccountId,
  rest: Pick<Caller, "managed" | "retired" | "credential" | "wallet" | "identityWallet">,
): Caller => ({
  accountId,
  isOwner: true,
  actorId: accountId,
  ...rest,
});
