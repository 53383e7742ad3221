import type { Touched } from "../app/queries";
import type { CallOptions, ChainSecuredClient, Client, OwnerWrite } from "../../client";
import type { PrimaryType } from "../../protocol/typedDataShape";
import type { SecretKind } from "../session/attempts";

/** A change of the account, described in words, for both modes. Has no effect until performed. */
export interface Change<R extends object = object> extends Reviewed<R> {
  /** What it makes old; left out: everything. */
  readonly touches?: readonly Touched[];
  /** The operation of API mode and its input. */
  readonly request: Request;
  /** API mode: the service submits it. */
  readonly viaApi: (client: Client, options: CallOptions) => Promise<R>;
}

export type Request = readonly [operation: string, input: object];

export interface Secret<R> {
  readonly kind: SecretKind;
  readonly label: string;
  readonly in: (made: R) => string | undefined;
}

/** What a ChainSecured owner reviews and signs. */
export interface Reviewed<R extends object = object> {
  /** What it does, as an imperative sentence without a full stop. */
  readonly title: string;
  /** Its arguments, human-readable. */
  readonly words: readonly (readonly [label: string, value: string])[];
  /**
   * Prepares what the owner signs. What it mints is stored by `keep` before that: nothing is attached whose secret may
   * be lost.
   */
  readonly viaChain: (owner: ChainSecuredClient, keep: (made: R) => Promise<void>) => Promise<OwnerWrite<R>>;
  /** What it makes has a secret, shown once. */
  readonly secret?: Secret<R> | undefined;
  /** What the wallet signs before there is anything to review. */
  readonly signedFirst?: SignedFirst;
}

export interface SignedFirst {
  /** Of the typed data. */
  readonly type: PrimaryType;
  /** What it is for, and what it costs. */
  readonly why: string;
}

/** The same for equal requests of an account, and for no others: titles and words may be equal for different ones. */
export const attemptName = (accountId: string, request: Request): string => JSON.stringify([accountId, ...request]);

export type Outcome<R extends object> =
  | { readonly state: "done"; readonly result: R }
  /** Not on chain yet; it may still get there. */
  | { readonly state: "sent" }
  | { readonly state: "collected" }
  | { readonly state: "cancelled" };

/** A change waiting to be sent with others. */
export interface Collected {
  readonly id: number;
  /** It may be on chain. */
  readonly wasSent?: boolean;
  readonly title: string;
  readonly words: Change["words"];
  readonly write: OwnerWrite;
}
