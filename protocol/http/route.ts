/**
 * What a route is: one entry from which the router, the guard, the OpenAPI document and the SDK are all built.
 * Source: specification §4, §5; wire "Requests and answers".
 */
import type { z } from "zod";
import type { ErrorCode } from "../errors";

export const API_PREFIX = "/core/v1";

/**
 * Who may call.
 * `none` anybody · `identityOptional` anybody, or an identity token that names the owner · `wellFormedKey` a key of the right form, known or not ·
 * `anyKey` a live key of an account or an identity token · `ownerKey` the account key or an identity token · `accountKey` the account key only ·
 * `keyOrWallet` as anyKey, or `X-Wallet-Auth` · `ownerOrWallet` as ownerKey, or `X-Wallet-Auth` · `optionalKey` as anyKey, or nobody · `stripe` a signed webhook.
 */
export type AuthKind =
  "none" | "identityOptional" | "wellFormedKey" | "anyKey" | "ownerKey" | "accountKey" | "keyOrWallet" | "ownerOrWallet" | "optionalKey" | "stripe";

/** How a body is read: its size limit and form. `raw` is handed on byte for byte. */
export type BodyKind = "none" | "json" | "code" | "signature" | "raw";

/** What a call costs: nothing, one management write, a run by the second; `writeIfFunded` is carried out at zero balance, too. */
export type Price = "free" | "managementWrite" | "writeIfFunded" | "run";

export type Tag = "Account" | "Usage keys" | "Groups" | "Wallets" | "Actions" | "ChainSecured" | "Configuration" | "Billing" | "History" | "Service";

export interface Alias {
  readonly method: "GET" | "POST";
  /** `{svc}` stands for the service's name in lower case. */
  readonly path: string;
  readonly deprecated?: true;
}

export interface RequestShape {
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
}

export interface Route {
  readonly method: "GET" | "POST";
  /** Below `/core/v1`, or below the origin when `at` is "origin"; parameters as `:name`. */
  readonly path: string;
  readonly at?: "origin" | undefined;
  readonly aliases?: readonly Alias[];
  readonly tag: Tag;
  readonly summary: string;
  readonly auth: AuthKind;
  readonly body: BodyKind;
  readonly request: RequestShape;
  readonly response: z.ZodType;
  /** The answer's content type when it is not JSON. */
  readonly answers?: string;
  /** Codes beyond those that follow from auth, body, price and effect. */
  readonly errors: readonly ErrorCode[];
  readonly example: { readonly params?: Record<string, string>; readonly query?: Record<string, string>; readonly body?: unknown; readonly response: unknown };
  readonly price: Price;
  /** True when a call has an effect: it accepts `Idempotency-Key`. */
  readonly effect: boolean;
  /** The handler itself makes a repeated `Idempotency-Key` safe: the payment processor knows the attempt. */
  readonly idempotentByItself?: true;
  /** Members of the answer that are secrets: never stored, absent from a replay. */
  readonly secrets?: readonly string[];
  /** Counted against the budget of unauthenticated mints. */
  readonly mints?: true;
  /** Costs much and asks for no credential: counted by address. */
  readonly heavy?: true;
  /** Begins a payment: counted by account. */
  readonly pays?: true;
  readonly deprecated?: true;
  /** The answer's total goes out as `X-Total-Count`. */
  readonly paged?: true;
}

/** Checks the entry and keeps its own type: schemas, auth kind and content type are read from it. */
export const defineRoute = <const T extends Route>(route: T): T => route;

/** A part of a request as the code works with it; undefined where the route has none. */
export type PartOf<T extends Route, K extends keyof RequestShape> = T["request"] extends { readonly [P in K]: infer S extends z.ZodType }
  ? z.output<S>
  : undefined;
/** A part of a request as a client writes it. */
export type InputOf<T extends Route, K extends keyof RequestShape> = T["request"] extends { readonly [P in K]: infer S extends z.ZodType }
  ? z.input<S>
  : undefined;
export type AnswerOf<T extends Route> = z.output<T["response"]>;
