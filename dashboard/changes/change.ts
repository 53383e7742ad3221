import type { Touched } from "../app/queries";
import type { CallOptions, ChainSecuredClient, Client, OwnerWrite, UsageKeyPermissions } from "../../client";

/** A change of the account, described in words, for both modes. Has no effect until performed. */
export interface Change<R extends object = object> {
  /** What it does, as an imperative sentence without a full stop. */
  readonly title: string;
  /** Its arguments, human-readable. */
  readonly words: readonly (readonly [label: string, value: string])[];
  /** What it makes old; left out: everything. */
  readonly touches?: readonly Touched[];
  /** API mode: the service submits it. */
  readonly viaApi: (client: Client, options: CallOptions) => Promise<R>;
  /** ChainSecured: prepared for the owner to sign. */
  readonly viaChain: (owner: ChainSecuredClient) => Promise<Prepared<R>>;
  /** The request whose answer has a secret, which is repeated if that answer is lost. */
  readonly secretBody?: UsageKeyPermissions;
  /** What the wallet signs before there is anything to review, and why. */
  readonly signedFirst?: string;
}

/** Equal for equal changes of an account. */
export const attemptName = (
  accountId: string,
  { title, words, secretBody }: Pick<Change, "title" | "words" | "secretBody">,
): string => JSON.stringify([accountId, title, words, secretBody]);

export interface Prepared<R extends object> {
  readonly write: OwnerWrite<R>;
  /** The result known before it is on chain: a secret that is shown once. */
  readonly early?: Partial<R>;
}

export type Outcome<R extends object> =
  | { readonly state: "done"; readonly result: R }
  | { readonly state: "collected"; readonly early: Partial<R> }
  | { readonly state: "cancelled" };

/** A change waiting to be sent with others. */
export interface Collected {
  readonly id: number;
  readonly title: string;
  readonly words: Change["words"];
  readonly write: OwnerWrite;
}
