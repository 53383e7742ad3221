/**
 * The definition of a route, from which router, guard, OpenAPI document and SDK are built.
 * Source: docs/conformance.md §4, §5.
 */
import type { z } from "zod";
import type { ErrorCode } from "../errors";

export const API_PREFIX = "/core/v1";

/**
 * Required credential.
 * - `none`: no credential.
 * - `identityOptional`: none, or an identity token that names the owner.
 * - `wellFormedKey`: a well-formed key, known or unknown.
 * - `anyKey`: a live key of an account or an identity token.
 * - `ownerKey`: the account key or an identity token.
 * - `accountKey`: the account key only.
 * - `keyOrWallet`: as `anyKey`, or `X-Wallet-Auth`.
 * - `ownerOrWallet`: as `ownerKey`, or `X-Wallet-Auth`.
 * - `optionalKey`: as `anyKey`, or none.
 * - `stripe`: a signed webhook.
 */
export type AuthKind =
  | "none"
  | "identityOptional"
  | "wellFormedKey"
  | "anyKey"
  | "ownerKey"
  | "accountKey"
  | "keyOrWallet"
  | "ownerOrWallet"
  | "optionalKey"
  | "stripe";

/** How a body is parsed and its size limit. `raw` and `hook` are passed on unchanged. */
export type BodyKind = "none" | "json" | "code" | "signature" | "raw" | "hook";

/**
 * Price of a call: free, one management write, or a run per second. `writeIfFunded` is also executed at zero balance.
 */
export type Price = "free" | "managementWrite" | "writeIfFunded" | "run";

export type Tag =
  | "Account"
  | "Usage keys"
  | "Groups"
  | "Wallets"
  | "Actions"
  | "Triggers"
  | "ChainSecured"
  | "Configuration"
  | "Billing"
  | "History"
  | "Webhooks"
  | "Service";

export interface Alias {
  readonly method: "GET" | "POST";
  /** Below the origin, whatever the route's own place. */
  readonly at?: "origin";
  /** `{svc}` is replaced with the service's name in lower case. */
  readonly path: string;
  readonly deprecated?: true;
  /** Converts a body as programs using this alias send it to the route's own. */
  readonly read?: (body: unknown) => unknown;
  /** Converts the route's answer to the form that programs using this alias expect. */
  readonly answer?: (answer: unknown) => unknown;
  /** That form, where the route's own schema does not describe it. */
  readonly answered?: { readonly response: z.ZodType; readonly example: unknown };
}

export interface RequestShape {
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
}

export interface Route {
  readonly method: "GET" | "POST";
  /** Path below `/core/v1`, or below the origin when `at` is "origin"; parameters as `:name`. */
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
  /** Codes in addition to those that follow from auth, body, price and effect. */
  readonly errors: readonly ErrorCode[];
  readonly example: {
    readonly params?: Record<string, string>;
    readonly query?: Record<string, string>;
    readonly body?: unknown;
    readonly response: unknown;
  };
  readonly price: Price;
  /** A write in API mode only; in ChainSecured mode the owner sends it. */
  readonly bothModes?: true;
  /** The call has an effect, so it accepts `Idempotency-Key`. */
  readonly effect: boolean;
  /** The handler itself makes a repeated `Idempotency-Key` safe: the payment processor recognizes the attempt. */
  readonly idempotentByItself?: true;
  /** Members of the answer that are secrets: never stored, omitted from a replayed answer. */
  readonly secrets?: readonly string[];
  /** The keyholder can derive the secret again for a request repeated with `?secret=again`. */
  readonly secretAgain?: true;
  /** Counted against the budget of unauthenticated mints. */
  readonly mints?: true;
  /** Expensive without a credential: rate-limited by address. */
  readonly heavy?: true;
  /** Starts a payment: rate-limited by account. */
  readonly pays?: true;
  readonly deprecated?: true;
  /** The total is sent as `X-Total-Count`. */
  readonly paged?: true;
}

export const WITHOUT_CALLER: ReadonlySet<AuthKind> = new Set(["none", "stripe", "identityOptional", "wellFormedKey"]);

/** Whether it reads for an account: such reads share what a relayer has for them. Exports do so page by page. */
export const isReadOfCaller = ({ method, auth, answers }: Route): boolean =>
  method === "GET" && answers === undefined && !WITHOUT_CALLER.has(auth);

/** Type-checks the entry and keeps its own type, from which schemas, auth kind and content type are inferred. */
export const defineRoute = <const T extends Route>(route: T): T => route;

/** A parsed part of a request; undefined if the route has none. */
export type PartOf<T extends Route, K extends keyof RequestShape> = T["request"] extends {
  readonly [P in K]: infer S extends z.ZodType;
}
  ? z.output<S>
  : undefined;
/** A part of a request as clients send it. */
export type InputOf<T extends Route, K extends keyof RequestShape> = T["request"] extends {
  readonly [P in K]: infer S extends z.ZodType;
}
  ? z.input<S>
  : undefined;
export type AnswerOf<T extends Route> = z.output<T["response"]>;
