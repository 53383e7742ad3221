/**
 * What a route's handler is given and gives back. A routes file exports one function of its dependencies that returns a handler per route of the table:
 * `export const groupRoutes = (deps): HandlersOf<"addGroup" | …> => ({ addGroup: async (call) => … })`. It knows no koa.
 */
import type { AnswerOf, PartOf, RouteName, RouteOf } from "../../protocol/http";
import type { Act } from "../act";
import type { Credential } from "../../protocol/executor";
import type { AccountId, Address, ApiKey, Hash32, KeyId } from "../../protocol/ids";

/** Who asks, and for which account. */
export interface Caller {
  readonly accountId: AccountId;
  /** The account key, an identity token's owner or a wallet: may do everything. */
  readonly isOwner: boolean;
  /** Argument 0 of a write: the account id for owners, the key's id for usage keys. Also names the caller in the audit log. */
  readonly actorId: Hash32;
  /** Of a usage key; absent for owners. */
  readonly keyId?: KeyId;
  /** The usage key's spending cap over its life in US cents; absent = none. */
  readonly capCents?: number;
  /** What the executor verifies for itself; absent for a wallet (`X-Wallet-Auth`). */
  readonly credential?: Credential;
  /** The key itself, for routes that ask about it. */
  readonly key?: ApiKey;
  /** True in API mode; the mode decides whether management writes are possible at all. */
  readonly managed: boolean;
  /** A former owner credential of an account that was converted or handed over: 403 everywhere but account_exists. */
  readonly retired: boolean;
  /** The wallet of an owner who showed an identity token: the executor signs for it. */
  readonly identityWallet?: Address;
  /** Set when the caller proved a wallet. */
  readonly wallet?: Address;
}

export interface Call<N extends RouteName> {
  readonly route: N;
  readonly params: PartOf<RouteOf<N>, "params">;
  readonly query: PartOf<RouteOf<N>, "query">;
  readonly body: PartOf<RouteOf<N>, "body">;
  /** Present unless the route asks for no credential or an optional one. */
  readonly caller: N extends AnonymousRoute ? Caller | undefined : Caller;
  /**
   * Settles when the contract has confirmed the caller. A route that is anticipated (reads, runs) may ask before that, and must wait for it before it
   * changes anything; for all others it is settled already.
   */
  readonly confirmed: Promise<void>;
  /** The verified key of `account_exists`, the token of `new_account`. */
  readonly presented: Presented;
  readonly requestId: string;
  /** Aborted when the client has gone or the request took too long. */
  readonly signal: AbortSignal;
  /** The act that the client's `Idempotency-Key` names: the same one in every retry. */
  readonly act: Act | undefined;
  /** The `Idempotency-Key` as the client sent it. */
  readonly attemptKey: string | undefined;
  /** The body byte for byte, on routes with a raw body. */
  readonly rawBody: Buffer;
  /** For a request that mints without a credential: counts against the limits of such requests. Throws `rate_limited`. */
  countAsMint(): Promise<void>;
  header(name: string): string | undefined;
  setHeader(name: string, value: string): void;
  /** The list's total, for `X-Total-Count`. */
  setTotal(total: number): void;
}

/** The credentials as sent, form checked, nothing asked of the chain yet. */
export interface Presented {
  readonly key?: ApiKey;
  readonly identityToken?: string;
  readonly walletAuth?: string;
  readonly account?: AccountId;
}

type AnonymousRoute = {
  [N in RouteName]: RouteOf<N>["auth"] extends "none" | "identityOptional" | "wellFormedKey" | "optionalKey" | "stripe" ? N : never;
}[RouteName];

/** Bytes with their content type, for routes that do not answer JSON. */
export interface RawAnswer {
  readonly contentType: string;
  readonly content: Buffer | string;
  /** Default 200. */
  readonly status?: number;
}

export type Answer<N extends RouteName> = RouteOf<N> extends { readonly answers: string } ? RawAnswer : AnswerOf<RouteOf<N>>;
export type Handler<N extends RouteName> = (call: Call<N>) => Promise<Answer<N>>;
export type HandlersOf<N extends RouteName> = { readonly [K in N]: Handler<K> };
export type Handlers = HandlersOf<RouteName>;
