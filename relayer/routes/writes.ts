/**
 * One way for every API-mode write: the credential, the price and the idempotency key of the call go with it to the chain room, which simulates, has the price
 * reserved, and answers when it is mined. What was reserved is settled or released there. Source: house "Three walks".
 */
import { createHash } from "node:crypto";
import { KeywrightError } from "../../protocol/errors";
import type { ContractWrite, Credential, WriteArgument } from "../../protocol/executor";
import { routeOf, type RouteName } from "../../protocol/http";
import type { AccountId } from "../../protocol/ids";
import type { Act } from "../act";
import type { CredentialWrite, SubmissionId, SubmitAnswer, SubmitCommon } from "../chain/types";
import { decodeForward, type Forwarded, type SignedForwardRequest } from "../../protocol/forward";
import type { Call, Caller } from "../middleware/call";
import type { RouteDeps } from "./deps";

/** As much of a call as a write needs. */
export interface WriteCall {
  readonly route: RouteName;
  readonly caller: Caller | undefined;
  readonly requestId: string;
  readonly act: Act | undefined;
}

export interface WriteOptions {
  readonly convert?: CredentialWrite["convert"];
  /** Carried by the 504 of a minting route: what can be known of a secret nobody will see. */
  readonly pendingFacts?: Readonly<Record<string, unknown>>;
  /** From 2 on where one request may make several writes, each only after the one before it failed: a repeated request meets them in the same order. */
  readonly attempt?: number;
}

const keyOf = (act: Act, { attempt = 1 }: WriteOptions): string => (attempt === 1 ? act.id : `${act.id}#${attempt}`);

export const write = (functionName: string, ...args: WriteArgument[]): ContractWrite => ({ functionName, args });

/** How long a request that the executor signed for an identity may take to be mined. */
const FORWARD_SECONDS = 600;

type Spender = Omit<Parameters<RouteDeps["credits"]["reserveWrite"]>[0], "submissionId" | "cents">;

/** What an owner must be able to do without credit: ending a leaked key, stopping everything, leaving. */
const EVEN_WITHOUT_CREDIT = new Set(["removeUsageApiKey", "revokeAllUsageApiKeys", "setAccountFrozen", "transferOwnership", "convertToChainSecuredAccount"]);

/** `newAccount` writes for an account that does not exist yet; everything else for the caller's own. */
export interface Author {
  readonly accountId: AccountId;
  readonly credential: Credential;
}

export class Writes {
  constructor(private readonly deps: Pick<RouteDeps, "chain" | "credits" | "executor" | "prices" | "log">) {}

  /** @throws what `Chain.submit` throws. */
  async send(call: WriteCall, contractWrite: CredentialWrite["write"], options: WriteOptions = {}): Promise<SubmitAnswer> {
    return this.sendAs(authorOf(call), call, contractWrite, options);
  }

  async sendAs(author: Author, call: WriteCall, contractWrite: CredentialWrite["write"], options: WriteOptions = {}): Promise<SubmitAnswer> {
    let functionName = typeof contractWrite === "function" ? undefined : contractWrite.functionName;
    const inTurn = async (make: () => Promise<ContractWrite>): Promise<ContractWrite> => {
      const made = await make();
      functionName = made.functionName;
      return made;
    };
    const making = typeof contractWrite === "function" ? () => inTurn(contractWrite) : contractWrite;
    const submitted = this.deps.chain.submit({
      ...this.#common(author.accountId, call, this.#spenderOf(call)),
      ...(isOfIdentity(call.caller, author)
        ? { forward: () => this.#signedByIdentity(author, call, making) }
        : { credential: author.credential, write: making }),
      ...(options.convert === undefined ? {} : { convert: options.convert }),
      ...(call.act === undefined ? {} : { idempotencyKey: keyOf(call.act, options) }),
    });
    const answer = await submitted.catch((error: unknown) => {
      throw withPendingFacts(error, options.pendingFacts);
    });
    this.#audit(author.accountId, call, functionName, answer);
    return answer;
  }

  /** The write as a forward request of the identity's wallet, signed in the TEE. */
  async #signedByIdentity({ credential }: Author, { caller, requestId }: WriteCall, making: CredentialWrite["write"]): Promise<SignedForwardRequest> {
    const { chain, executor } = this.deps;
    if (credential.type !== "identity" || caller?.identityWallet === undefined) throw new TypeError("only an identity's write is signed for it");
    const contractWrite = typeof making === "function" ? await making() : making;
    const [estimate, nonce] = await Promise.all([chain.estimateAsOwner(contractWrite, caller.identityWallet), chain.forwarderNonce(caller.identityWallet)]);
    const asked = {
      token: credential.token,
      write: contractWrite,
      gas: String((estimate * 13n) / 10n + 20_000n),
      forwarderNonce: String(nonce),
      deadline: String(Math.floor(Date.now() / 1_000) + FORWARD_SECONDS),
    };
    return decodeForward((await executor.call("signForwardOfIdentity", asked, { requestId })).forward);
  }

  /** A request that the owner signed, once: the same request sent again gets the first one's answer. `isFree` for what makes an account. */
  async relay(call: WriteCall, { accountId, digest, request, calls }: Forwarded, isFree: boolean): Promise<SubmitAnswer> {
    const evenWithoutCredit = calls.every(({ functionName }) => EVEN_WITHOUT_CREDIT.has(functionName));
    const answer = await this.deps.chain.submit({
      ...this.#common(accountId, call, isFree ? undefined : { accountId, evenWithoutCredit }),
      forward: request,
      idempotencyKey: `relay:${digest}`,
    });
    this.#audit(accountId, call, calls.map(({ functionName }) => functionName).join(","), answer);
    return answer;
  }

  #common(accountId: AccountId, { route, requestId, act }: WriteCall, spender: Spender | undefined): SubmitCommon {
    const cents = this.deps.prices.managementWriteCents;
    const reserve =
      spender === undefined || cents === 0 ? undefined : (submissionId: SubmissionId) => this.deps.credits.reserveWrite({ ...spender, cents, submissionId });
    return {
      accountId,
      kind: kindOf(route),
      requestId,
      ...(act === undefined ? {} : { act }),
      ...(reserve === undefined ? {} : { reserve }),
    };
  }

  /** Who pays for the write: nobody when it costs nothing. */
  #spenderOf({ route, caller }: WriteCall): Spender | undefined {
    const { price } = routeOf(route);
    if (price === "free" || caller === undefined) return undefined;
    const { accountId, keyId, capCents } = caller;
    return { accountId, keyId, capCents, evenWithoutCredit: price === "writeIfFunded" };
  }

  #audit(accountId: AccountId, { route, caller, requestId }: WriteCall, functionName: string | undefined, answer: SubmitAnswer): void {
    const actor = caller?.actorId ?? accountId;
    this.deps.log.info({ audit: true, requestId, account: accountId, actor, kind: kindOf(route), functionName, transaction: answer.transactionHash }, "write");
  }
}

/** An identity's wallet owns the account itself; no payer may write in its stead. */
const isOfIdentity = (caller: Caller | undefined, { credential }: Author): boolean =>
  credential.type === "identity" && caller?.identityWallet !== undefined && !caller.managed;

function authorOf({ caller }: WriteCall): Author {
  if (caller?.credential === undefined) throw new KeywrightError("missing_credential", "This write takes a key or an identity token.");
  return { accountId: caller.accountId, credential: caller.credential };
}

/** `addUsageApiKey` → `add_usage_api_key`. */
export const kindOf = (route: RouteName): string => route.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function withPendingFacts(error: unknown, facts: Readonly<Record<string, unknown>> | undefined): unknown {
  if (facts === undefined || !(error instanceof KeywrightError) || error.code !== "submission_pending") return error;
  const retryAfter = error.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: error.retryAfterSeconds };
  return new KeywrightError(error.code, error.detail, { ...error.facts, ...facts }, { cause: error.cause, ...retryAfter });
}

/** What every write answers at least. */
export const done = ({ transactionHash }: SubmitAnswer): { success: true; transaction_hash: string } => ({ success: true, transaction_hash: transactionHash });

/** Names the request a secret is made for. It covers the client's own key, which is nowhere kept for longer than a day: what is in the store later gives no secret back. */
export function attemptOf({ act, attemptKey }: Pick<Call<"newAccount">, "act" | "attemptKey">, number = 1): { attempt?: string } {
  if (act === undefined || attemptKey === undefined) return {};
  return {
    attempt: createHash("sha256")
      .update(JSON.stringify([act.id, attemptKey, number]))
      .digest("hex"),
  };
}

/** A secret is in the first answer only; where an earlier request's write is answered, it is the secret of that write or none. */
export function secretOnce<K extends string>(
  name: K,
  { secret, hash }: { readonly secret: string; readonly hash: string },
  { replayed, result }: SubmitAnswer,
): { [P in K]?: string } | { secret_returned_before: true } {
  if (replayed && result.api_key_hash !== hash) return { secret_returned_before: true };
  return { [name]: secret } as { [P in K]: string };
}
