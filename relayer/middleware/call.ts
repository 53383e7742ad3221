/**
 * What a route handler receives and returns. Handlers do not depend on Koa. A routes file exports one function of its
 * dependencies that returns a handler per route:
 * `export const groupRoutes = (deps): HandlersOf<keyof typeof routes> => ({ addGroup: async (call) => … })`.
 */
import type { Readable } from "node:stream";
import type { AnswerOf, PartOf, RouteName, RouteOf } from "../../protocol/http";
import type { IdempotentOperation } from "../idempotentOperation";
import type { Credential } from "../../protocol/executor";
import type { KeyState } from "../../protocol/keyState";
import type { AccountId, Address, ApiKey, Hash32, KeyId } from "../../protocol/ids";

/** The authenticated caller and the account it acts for. */
export interface Caller {
  readonly accountId: AccountId;
  /** The account key, an identity token's owner or a wallet: full rights. */
  readonly isOwner: boolean;
  /**
   * Argument 0 of a write: the account id for owners, the key's id for usage keys. Also names the caller in the audit
   * log.
   */
  readonly actorId: Hash32;
  /** Of a usage key; absent for owners. */
  readonly keyId?: KeyId;
  /** The usage key's spending cap over its life in US cents; absent = none. */
  readonly capCents?: number;
  /** The credential that the executor verifies itself; absent for a wallet (`X-Wallet-Auth`). */
  readonly credential?: Credential;
  /** The key itself, for routes that look it up. */
  readonly key?: ApiKey;
  /** True in API mode; the mode decides whether management writes are possible at all. */
  readonly managed: boolean;
  /**
   * A former owner credential of an account that was converted or handed over: 403 on every route but account_exists.
   */
  readonly retired: boolean;
  /** The wallet of an owner who signed in with an identity token: the executor signs for it. */
  readonly identityWallet?: Address;
  /** Set when the caller proved control of a wallet. */
  readonly wallet?: Address;
}

export interface Call<N extends RouteName> {
  readonly route: N;
  readonly params: PartOf<RouteOf<N>, "params">;
  readonly query: PartOf<RouteOf<N>, "query">;
  readonly body: PartOf<RouteOf<N>, "body">;
  /** Present unless the route takes no credential or an optional one. */
  readonly caller: N extends AnonymousRoute ? Caller | undefined : Caller;
  /**
   * Settles once the contract has confirmed the caller. Anticipated routes (reads) start before that and must await it
   * before changing anything; for all others it has settled already.
   */
  readonly confirmed: Promise<void>;
  /** For runs. Until the executor has confirmed it, `caller` is the cached caller. */
  readonly deciding: N extends "runAction" ? Deciding : undefined;
  /** The credentials as sent: the well-formed key of `account_exists`, the token of `new_account`. */
  readonly presented: Presented;
  readonly requestId: string;
  /** Of the client. */
  readonly address: string;
  /** Aborted when the client disconnects or the deadline passes. */
  readonly signal: AbortSignal;
  /** The operation named by the client's `Idempotency-Key`: the same for every retry. */
  readonly operation: IdempotentOperation | undefined;
  /** The `Idempotency-Key` as the client sent it. */
  readonly attemptKey: string | undefined;
  /** The first answer to this request, without its secret, where the request asks for that once more. */
  readonly kept: unknown;
  /** The body byte for byte, on routes with a raw body. */
  readonly rawBody: Buffer;
  /** What is left of the body is not needed any more: `letGo` drops it when others need its memory. */
  lendBody(letGo: () => void): void;
  /** Counts a request that mints without a credential against the limits for those. Throws `rate_limited`. */
  countAsMint(): Promise<void>;
  /** Counts a write without credit; call the returned function to refund it. Throws `rate_limited`. */
  countAsFree(accountId: AccountId): Promise<() => Promise<void>>;
  /** Counts what is stored before it is paid. Throws `rate_limited`. */
  countAsFreeChange(): Promise<void>;
  header(name: string): string | undefined;
  acceptsEncoding(name: string): boolean;
  setHeader(name: string, value: string): void;
  /** The list's total, for `X-Total-Count`. */
  setTotal(total: number): void;
}

/** How a run proceeds once its caller is known. */
export interface Deciding {
  /** Resolves the caller by asking the contract: for refusals that precede the executor's decision. */
  identified(): Promise<Caller>;
  /** Resolves the caller from the key state in the executor's decision. */
  named(key: KeyState): Promise<Caller>;
  /** Forgets the key: the executor does not know it. */
  forget(): void;
  /** Continues for this caller: idempotency, role check, then `work`. */
  as(
    caller: Caller,
    work: (operation: IdempotentOperation | undefined) => Promise<Answer<"runAction">>,
  ): Promise<Answer<"runAction">>;
}

/** A key, and the id under which the contract knows keys made by this service. */
export interface PresentedKey {
  readonly text: ApiKey;
  readonly id: KeyId;
}

/** The credentials as sent: well-formed, not yet checked against the chain. */
export interface Presented {
  readonly key?: PresentedKey;
  readonly identityToken?: string;
  readonly walletAuth?: string;
  readonly account?: AccountId;
}

type AnonymousRoute = {
  [N in RouteName]: RouteOf<N>["auth"] extends "none" | "identityOptional" | "wellFormedKey" | "optionalKey" | "stripe"
    ? N
    : never;
}[RouteName];

/** Bytes with their content type, for routes that do not answer JSON. */
export interface RawAnswer {
  readonly contentType: string;
  readonly content: Buffer | string;
  /** Default 200. */
  readonly status?: number;
}

/** As `RawAnswer`, sent as it is made. */
export interface StreamedAnswer {
  readonly contentType: string;
  readonly content: Readable;
}

export type Answer<N extends RouteName> =
  RouteOf<N> extends { readonly answers: "application/x-ndjson" }
    ? StreamedAnswer
    : RouteOf<N> extends { readonly answers: string }
      ? RawAnswer
      : AnswerOf<RouteOf<N>>;
export type Handler<N extends RouteName> = (call: Call<N>) => Promise<Answer<N>>;
export type HandlersOf<N extends RouteName> = { readonly [K in N]: Handler<K> };
export type Handlers = HandlersOf<RouteName>;
