/**
 * The common path of API writes: passes credential, price and idempotency key to the chain module, which simulates,
 * reserves the price, and answers once the write is mined. It also settles or releases the reservation.
 */
import { createHash } from "node:crypto";
import { KeywrightError } from "../../protocol/errors";
import type { ContractWrite, Credential, WriteArgument } from "../../protocol/executor";
import { routeOf, type RouteName } from "../../protocol/http";
import type { AccountId, Address } from "../../protocol/ids";
import type { IdempotentOperation } from "../idempotentOperation";
import type { CredentialWrite, OwnersRequest, SubmissionId, SubmitAnswer, SubmitCommon } from "../chain/types";
import { decodeForward, type Forwarded, type SignedForwardRequest } from "../../protocol/forward";
import type { Call, Caller } from "../middleware/call";
import type { WriteReservation } from "../credits/types";
import type { RouteDeps } from "./deps";
import { defined } from "../../protocol/defined";

/** The part of a call that a write needs. */
export interface WriteCall {
  readonly route: RouteName;
  readonly caller: Caller | undefined;
  readonly requestId: string;
  readonly operation: IdempotentOperation | undefined;
  countAsFree(accountId: AccountId): Promise<() => Promise<void>>;
  countAsMint(): Promise<void>;
}

export interface WriteOptions {
  readonly convert?: CredentialWrite["convert"];
  /** Added to a minting route's 504: identifies the secret that will not be returned. */
  readonly pendingFacts?: Readonly<Record<string, unknown>>;
  /** Which of the request's writes this is, from 1; the same when the request is repeated. */
  readonly attempt?: number;
}

const keyOf = (operation: IdempotentOperation, { attempt = 1 }: WriteOptions): string =>
  attempt === 1 ? operation.id : `${operation.id}#${attempt}`;

export const write = (functionName: string, ...args: WriteArgument[]): ContractWrite => ({ functionName, args });

/** Seconds in which a request signed for an identity must be mined. */
const FORWARD_SECONDS = 600;

type Spender = Omit<WriteReservation, "submissionId" | "cents">;

/**
 * Operations that an owner can do without credit: revoke a leaked key, freeze, transfer or convert the account. Limited
 * in number and gas, since they are not paid for.
 */
const EVEN_WITHOUT_CREDIT = new Set([
  "removeUsageApiKey",
  "revokeAllUsageApiKeys",
  "setAccountFrozen",
  "transferOwnership",
  "convertToChainSecuredAccount",
]);
const MAX_FREE_CALLS = 8;
/** Gas limit of a free request: one that creates an account, or that is carried out without credit. */
export const FREE_GAS = 1_500_000n;

/** `newAccount` writes for an account that does not exist yet; all others for the caller's own. */
export interface Author {
  readonly accountId: AccountId;
  readonly credential: Credential;
}

export class Writes {
  readonly #deps: Pick<RouteDeps, "chain" | "credits" | "executor" | "prices" | "log">;

  constructor(deps: Pick<RouteDeps, "chain" | "credits" | "executor" | "prices" | "log">) {
    this.#deps = deps;
  }

  /** @throws the errors of `Chain.submit`. */
  async send(
    call: WriteCall,
    contractWrite: CredentialWrite["write"],
    options: WriteOptions = {},
  ): Promise<SubmitAnswer> {
    return this.sendAs(authorOf(call), call, contractWrite, options);
  }

  async sendAs(
    author: Author,
    call: WriteCall,
    contractWrite: CredentialWrite["write"],
    options: WriteOptions = {},
  ): Promise<SubmitAnswer> {
    let functionName = typeof contractWrite === "function" ? undefined : contractWrite.functionName;
    const inTurn = async (make: () => Promise<ContractWrite>): Promise<ContractWrite> => {
      const made = await make();
      functionName = made.functionName;
      return made;
    };
    const making = typeof contractWrite === "function" ? () => inTurn(contractWrite) : contractWrite;
    const signer = author.credential.type === "identity" ? signingWalletOf(call.caller) : undefined;
    const submitted = this.#submit(author.accountId, call, this.#spenderOf(call), {
      ...(signer === undefined
        ? { credential: author.credential, write: making }
        : { signer, forward: () => this.#signedByIdentity(author, signer, call, making) }),
      ...defined({ convert: options.convert }),
      ...defined({ idempotencyKey: call.operation && keyOf(call.operation, options) }),
    });
    const answer = await submitted.catch((error: unknown) => {
      throw withPendingFacts(error, options.pendingFacts);
    });
    this.#audit(author.accountId, call, functionName, answer);
    return answer;
  }

  /** Makes the write a forward request of the identity's wallet, signed in the TEE. */
  async #signedByIdentity(
    { credential }: Author,
    signer: Address,
    { requestId }: WriteCall,
    making: CredentialWrite["write"],
  ): Promise<SignedForwardRequest> {
    const { chain, executor } = this.#deps;
    if (credential.type !== "identity") throw new TypeError("only an identity's write is signed for it");
    const contractWrite = typeof making === "function" ? await making() : making;
    const [estimate, nonce] = await Promise.all([
      chain.estimateAsOwner(contractWrite, signer),
      chain.forwarderNonce(signer),
    ]);
    const asked = {
      token: credential.token,
      write: contractWrite,
      gas: String((estimate * 13n) / 10n + 20_000n),
      forwarderNonce: String(nonce),
      deadline: String(Math.floor(Date.now() / 1_000) + FORWARD_SECONDS),
    };
    return decodeForward((await executor.call("signForwardOfIdentity", asked, { requestId })).forward);
  }

  /**
   * Relays a request signed by the owner, once: repeating it returns the first one's result. `isFree` if it creates an
   * account.
   */
  async relay(
    call: WriteCall,
    { accountId, digest, request, calls }: Forwarded,
    isFree: boolean,
  ): Promise<SubmitAnswer> {
    const spender = isFree ? undefined : { accountId, evenWithoutCredit: isEvenWithoutCredit(request, calls) };
    const answer = await this.#submit(accountId, call, spender, {
      admit: () => (isFree ? call.countAsMint() : this.#requireOwner(accountId, request.from)),
      signer: request.from,
      forward: request,
      idempotencyKey: `relay:${digest}`,
    });
    this.#audit(accountId, call, calls.map(({ functionName }) => functionName).join(","), answer);
    return answer;
  }

  /** Anyone can sign a request for any account: only the owner's may enter the account's queue. */
  async #requireOwner(accountId: AccountId, signer: Address): Promise<void> {
    const account = await this.#deps.chain.account(accountId);
    if (account === undefined) throw new KeywrightError("unknown_account", `There is no account ${accountId}.`);
    if (account.owner !== signer) throw new KeywrightError("not_authorized", `${signer} does not own the account.`);
  }

  async #submit(
    accountId: AccountId,
    call: WriteCall,
    spender: Spender | undefined,
    request: (CredentialWrite | OwnersRequest) & Pick<SubmitCommon, "admit" | "idempotencyKey">,
  ): Promise<SubmitAnswer> {
    const { route, requestId, operation } = call;
    const cents = this.#deps.prices.managementWriteCents;
    let takeBack = async (): Promise<void> => undefined;
    const reserveFor = (payer: Spender) => async (submissionId: SubmissionId) => {
      const isHeld = await this.#deps.credits.reservations.reserveWrite({ ...payer, cents, submissionId });
      if (!isHeld) takeBack = await call.countAsFree(accountId);
      return isHeld;
    };
    const reserve = spender === undefined || cents === 0 ? undefined : reserveFor(spender);
    const usageKey = call.caller?.keyId;
    const common = { accountId, kind: kindOf(route), requestId, ...defined({ operation, reserve, usageKey }) };
    return this.#deps.chain.submit({ ...common, ...request }).catch(async (error: unknown) => {
      if (hadNoEffect(error)) await takeBack().catch(() => undefined);
      throw error;
    });
  }

  /** The payer of the write's price; undefined if it is free. */
  #spenderOf({ route, caller }: WriteCall): Spender | undefined {
    const { price } = routeOf(route);
    if (price === "free" || caller === undefined) return undefined;
    const { accountId, keyId, capCents } = caller;
    return { accountId, keyId, capCents, evenWithoutCredit: price === "writeIfFunded" };
  }

  #audit(
    accountId: AccountId,
    { route, caller, requestId }: WriteCall,
    functionName: string | undefined,
    answer: SubmitAnswer,
  ): void {
    const actor = caller?.actorId ?? accountId;
    this.#deps.log.info(
      {
        audit: true,
        requestId,
        account: accountId,
        actor,
        kind: kindOf(route),
        functionName,
        transaction: answer.transactionHash,
      },
      "write",
    );
  }
}

const isEvenWithoutCredit = ({ gas }: SignedForwardRequest, calls: Forwarded["calls"]): boolean =>
  BigInt(gas) <= FREE_GAS &&
  calls.length <= MAX_FREE_CALLS &&
  calls.every(({ functionName }) => EVEN_WITHOUT_CREDIT.has(functionName));

/** The identity's wallet if it owns a ChainSecured account, for which no payer may write. */
export const signingWalletOf = (caller: Caller | undefined): Address | undefined =>
  caller?.managed === false ? caller.identityWallet : undefined;

/** Failed for certain and without a transaction of its own, so that it cost no gas. */
const hadNoEffect = (error: unknown): boolean =>
  error instanceof KeywrightError &&
  error.code !== "submission_pending" &&
  error.facts["transaction_hash"] === undefined;

function authorOf({ caller }: WriteCall): Author {
  if (caller?.credential === undefined)
    throw new KeywrightError("missing_credential", "This write needs a key or an identity token.");
  return { accountId: caller.accountId, credential: caller.credential };
}

/** `addUsageApiKey` → `add_usage_api_key`. */
export const kindOf = (route: RouteName): string => route.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function withPendingFacts(error: unknown, facts: Readonly<Record<string, unknown>> | undefined): unknown {
  if (facts === undefined || !(error instanceof KeywrightError) || error.code !== "submission_pending") return error;
  const { code, detail, cause, retryAfterSeconds } = error;
  return new KeywrightError(code, detail, { ...error.facts, ...facts }, defined({ cause, retryAfterSeconds }));
}

/** Members of every write's response. */
export const done = ({ transactionHash }: SubmitAnswer): { success: true; transaction_hash: string } => ({
  success: true,
  transaction_hash: transactionHash,
});

/**
 * Identifies the request a secret is minted for. It includes the client's idempotency key, which is stored for at most
 * a day: later the store's content cannot reproduce the secret.
 */
export function attemptOf(
  { operation, attemptKey }: Pick<Call<"newAccount">, "operation" | "attemptKey">,
  number = 1,
): { attempt?: string } {
  if (operation === undefined || attemptKey === undefined) return {};
  return {
    attempt: createHash("sha256")
      .update(JSON.stringify([operation.id, attemptKey, number]))
      .digest("hex"),
  };
}

/**
 * The kept answer with its secret, which has been derived once more; undefined if this is not the one of that answer.
 */
export function withSecret<A extends object>(
  name: string,
  { secret, hash }: { readonly secret: string; readonly hash: string },
  kept: unknown,
): A | undefined {
  const { secret_returned_before: _, ...answer } = kept as Record<string, unknown>;
  return answer["api_key_hash"] === hash ? ({ ...answer, [name]: secret } as A) : undefined;
}

/**
 * A secret is returned only in the first response; when an earlier request's write is replayed, only if it is the
 * secret of that write.
 */
export function secretOnce<K extends string>(
  name: K,
  { secret, hash }: { readonly secret: string; readonly hash: string },
  { replayed, result }: SubmitAnswer,
): { [P in K]?: string } | { secret_returned_before: true } {
  if (replayed && result.api_key_hash !== hash) return { secret_returned_before: true };
  return { [name]: secret } as { [P in K]: string };
}
