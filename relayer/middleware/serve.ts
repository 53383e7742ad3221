/**
 * One route as Koa middleware. Checks run in the documented order: rate by address, type and size, credential, JSON,
 * fields, rate by key, idempotency, permission; then the handler.
 */
import { isDeepStrictEqual } from "node:util";
import { decodeJwt } from "jose";
import { clientGroup, clientNetwork } from "../../protocol/clientGroup";
import { isReadOfCaller, routeOf, type Alias, type Route, type RouteName } from "../../protocol/http";
import { KeywrightError } from "../../protocol/errors";
import { inScope, type Scope } from "../../protocol/fairShare";
import { free } from "../../protocol/free";
import { MAX_WALL_MS } from "../../protocol/limits";
import type { IdempotentOperation } from "../idempotentOperation";
import { isRaw, parseBody, readBody, requireAcceptableBody } from "./body";
import type { Answer, Call, Caller, Deciding, Handler, Presented, RawAnswer, StreamedAnswer } from "./call";
import type { RelayerContext, RelayerMiddleware } from "./context";
import { presentedCredentials, type Authentication, type Identity } from "./credentials";
import { guardAnswer, guardRequest, type GuardedRequest } from "./guard";
import { bodyHashOf, idempotencyKeyOf, requestName, type Idempotency } from "./idempotency";
import { permit } from "./permit";
import type { AccountId } from "../../protocol/ids";
import { hashedAddress, hashedNetworks, type RequestLimits } from "./rateLimits";
import { sharedRead } from "./sharedReads";
import { within } from "../../protocol/within";

export interface ServeDeps {
  readonly authentication: Authentication;
  readonly limits: RequestLimits;
  readonly idempotency: Idempotency;
  /** Key of the hashes that stand for client addresses in the store. */
  readonly addressHashKey: string;
  /** Whether an earlier attempt of this operation got as far as a submission. */
  readonly wasSubmitted: (operationId: string) => Promise<boolean>;
  readonly isHook: (id: string) => Promise<boolean>;
}

/** Maximum duration of a request: for a run its wall time plus queueing, otherwise the slowest write. */
const REQUEST_DEADLINE_MS = 120_000;
/** A shorter idempotency key might be guessed by somebody else at the same address, and must not return a secret. */
const UNGUESSABLE_CHARS = 32;
const RUN_DEADLINE_MS = MAX_WALL_MS + REQUEST_DEADLINE_MS;
const AWAITING_RUNS: ReadonlySet<RouteName> = new Set<RouteName>(["runAction", "runTrigger", "callHook"]);

/** A well-formed request and its caller. */
interface ParsedRequest {
  readonly presented: Presented;
  readonly caller: Caller | undefined;
  readonly identity: Identified;
  /** Set while `caller` comes from the cache and the contract is being asked to confirm it. */
  readonly confirmation: Promise<Caller | undefined> | undefined;
  /** Empty but on routes with a raw body. */
  readonly rawBody: Buffer;
  readonly bodyHash: string;
  /** Has what is left of the body give way to others'. */
  readonly lendBody: Call<RouteName>["lendBody"];
  readonly input: GuardedRequest;
}

/** @param alias the name under which the route is called, if it is not its own */
export function serve<N extends RouteName>(
  name: N,
  handler: Handler<N>,
  deps: ServeDeps,
  alias?: Alias,
): RelayerMiddleware {
  const route = routeOf(name);
  return async (ctx) => {
    ctx.state.route = name;
    ctx.state.client = clientGroup(ctx.ip);
    const handled = await inScope(ctx.state.client, undefined, async (scope) => {
      await withinBudgets(ctx, route, deps);
      requireAcceptableBody(ctx, route.body);
      const presented = presentedCredentials(ctx, route.auth);
      const identity = await identify(ctx, route, presented, deps);
      const request = await parse(ctx, name, { presented, identity }, deps, { scope, read: alias?.read });
      return withDeadline(ctx, name, (signal) => {
        const work = asConfirmed(request, (confirmed) => handle(ctx, name, confirmed, deps, handler, signal));
        identity.counted?.(work.then(({ answer }) => answer));
        return work;
      });
    });
    note(ctx, handled.caller);
    ctx.set({ ...handled.headers });
    const { answer = (own: unknown) => own, answered } = alias ?? {};
    send(ctx, { ...route, ...(answered && { response: answered.response }) }, answer(handled.answer));
  };
}

/** What was counted for a credential that only the handler of a `wellFormedKey` route looks up. */
type Identified = Identity & { readonly counted?: Counted };
type Counted = (outcome: Promise<unknown>) => void;

interface Reading {
  /** Holds what the body takes of the memory that all requests share. */
  readonly scope: Scope;
  readonly read: Alias["read"];
}

/** Reads the rest of the request: body, fields, rate by key. A cached caller is confirmed meanwhile. */
async function parse(
  ctx: RelayerContext,
  name: RouteName,
  { presented, identity }: Pick<ParsedRequest, "presented" | "identity">,
  deps: ServeDeps,
  reading: Reading,
): Promise<ParsedRequest> {
  const route = routeOf(name);
  const remembered = isAnticipated(route) || isDecidedByExecutor(name) ? identity.remembered : undefined;
  const confirmation = remembered !== undefined && isAnticipated(route) ? identity.caller() : undefined;
  const caller = remembered ?? (await identity.caller());
  const rest = readRest(ctx, name, caller, deps, reading);
  if (remembered === undefined) return { presented, caller, identity, confirmation, ...(await rest) };
  // An authentication error takes precedence over any other error in the request.
  confirmation?.catch(() => undefined);
  const read = await rest.catch((error: unknown) => identity.caller().then(() => raise(error)));
  return { presented, caller, identity, confirmation, ...read };
}

/** Per-address limits, before any work is done. */
async function withinBudgets(
  ctx: RelayerContext,
  route: Route,
  { limits, addressHashKey }: Pick<ServeDeps, "limits" | "addressHashKey">,
): Promise<void> {
  await limits.request(ctx.state.client);
  if (route.heavy) await limits.heavy(ctx.state.client);
  if (route.mints) await limits.mintBy(hashedAddress(addressHashKey, ctx.ip));
}

/** Error codes of credentials that are not valid for any account. */
const INVALID_CREDENTIAL_CODES: ReadonlySet<string> = new Set([
  "unknown_key",
  "key_expired",
  "invalid_identity_token",
  "invalid_wallet_auth",
  "account_not_found",
  "account_not_owned",
]);

/**
 * Looking a credential up costs round trips to chain and executor: each address has a separate budget for credentials
 * that turn out to be invalid.
 */
async function identify(
  ctx: RelayerContext,
  route: Route,
  presented: Presented,
  { authentication, limits }: ServeDeps,
): Promise<Identified> {
  if (authentication.isFamiliar(route.auth, presented)) {
    const identity = authentication.identify(route.auth, presented, ctx.state.requestId);
    return {
      ...identity,
      caller: () => identity.caller().catch((error: unknown) => noLongerValid(ctx, limits, error)),
    };
  }
  const takeBack = await limits.unknownCredential(ctx.state.client);
  const identity = authentication.identify(route.auth, presented, ctx.state.requestId);
  const counted: Counted = (outcome) =>
    void outcome.then(
      (valid) => valid !== false && takeBack(),
      (error: unknown) => isInvalid(error) || takeBack(),
    );
  // The handler of a `wellFormedKey` route looks the key up itself: its answer says whether it is valid.
  if (route.auth === "wellFormedKey") return { ...identity, counted };
  counted(identity.caller());
  return identity;
}

const isInvalid = (error: unknown): boolean =>
  error instanceof KeywrightError && INVALID_CREDENTIAL_CODES.has(error.code);

/** A cached credential that has become invalid counts as invalid once the contract has said so. */
async function noLongerValid(ctx: RelayerContext, limits: RequestLimits, error: unknown): Promise<never> {
  if (isInvalid(error)) await limits.unknownCredential(ctx.state.client).catch(() => undefined);
  throw error;
}

/** Reads may run while the caller is being confirmed, since they change nothing. */
const isAnticipated = ({ method }: Route): boolean => method === "GET";

/**
 * The executor's decision on a run identifies the caller: the relayer asks the contract only about keys it has not
 * cached, before it reads their body.
 */
const isDecidedByExecutor = (name: RouteName): boolean => name === "runAction";

async function readRest(
  ctx: RelayerContext,
  name: RouteName,
  caller: Caller | undefined,
  { limits }: ServeDeps,
  { scope, read = (body) => body }: Reading,
): Promise<Pick<ParsedRequest, "rawBody" | "bodyHash" | "lendBody" | "input">> {
  const route = routeOf(name);
  note(ctx, caller);
  const { bytes, keepOnly, lend } = await readBody(ctx, route.body, {
    scope,
    account: caller?.accountId ?? clientNetwork(ctx.ip),
    isAnonymous: caller === undefined,
  });
  const isAsSent = isRaw(route.body);
  try {
    const body = isAsSent ? undefined : read(await parseBody(bytes));
    const input = guardRequest(route, { params: ctx["params"], query: ctx.query, body });
    if (caller !== undefined) await limits.requestBy(caller.actorId);
    // Usage keys, which may be in anybody's hands, do not keep the owner from paying.
    if (caller !== undefined && route.pays)
      await limits.payment(caller.isOwner ? caller.accountId : `keys of ${caller.accountId}`);
    const bodyHash = bodyHashOf(ctx, bytes);
    // A run's body is lent once the executor has it; of others no more is needed than what was made of it.
    if (!isDecidedByExecutor(name)) keepOnly(isAsSent ? bytes : input.body);
    return { rawBody: isAsSent ? bytes : Buffer.alloc(0), bodyHash, lendBody: lend, input };
  } finally {
    if (!isAsSent) free(bytes);
  }
}

function note(ctx: RelayerContext, caller: Caller | undefined): void {
  if (caller === undefined) return;
  ctx.state.accountId = caller.accountId;
  if (caller.wallet !== undefined) ctx.set("X-Account", caller.accountId);
}

interface HandledRequest {
  readonly caller: Caller | undefined;
  readonly answer: unknown;
  readonly headers: Readonly<Record<string, string>>;
}
type ConfirmedRequest = Omit<ParsedRequest, "confirmation"> & { readonly confirmed: Promise<void> };

/**
 * With a cached caller, the handler runs while the contract is asked to confirm the caller. The result counts only if
 * both agree; otherwise it is discarded and the request is handled again for the actual caller, or refused.
 */
async function asConfirmed(
  request: ParsedRequest,
  work: (request: ConfirmedRequest) => Promise<HandledRequest>,
): Promise<HandledRequest> {
  const { confirmation } = request;
  if (confirmation === undefined) return work({ ...request, confirmed: Promise.resolve() });
  const isSame = confirmation.then((caller) => isDeepStrictEqual(caller, request.caller));
  const confirmed = isSame.then((same) => {
    if (!same) throw new Error("the caller differs from the cached one");
  });
  const early = work({ ...request, confirmed });
  // Both are awaited below or deliberately ignored: no unhandled rejections.
  early.catch(() => undefined);
  confirmed.catch(() => undefined);
  return (await isSame) ? early : work({ ...request, caller: await confirmation, confirmed: Promise.resolve() });
}

async function handle<N extends RouteName>(
  ctx: RelayerContext,
  name: N,
  request: ConfirmedRequest,
  deps: ServeDeps,
  handler: Handler<N>,
  signal: AbortSignal,
): Promise<HandledRequest> {
  const headers: Record<string, string> = {};
  const attemptKey = idempotencyKeyOf(ctx, name);
  if (name === "callHook") await requireHook(ctx, request.input, deps);
  const counts = {
    countAsMint: () => countAsMint(ctx, deps),
    countAsFree: (accountId: AccountId) => deps.limits.freeWrite(accountId),
    countAsFreeChange: () => deps.limits.freeChange(request.caller?.actorId ?? ""),
  };
  const call = (rest: Pick<Call<N>, "operation" | "deciding"> & Partial<Pick<Call<N>, "kept">>): Call<N> =>
    callOf(ctx, name, request, headers, { signal, attemptKey, ...counts, ...rest });
  const context = { ctx, name, attemptKey, request, deps };
  if (!isDecidedByExecutor(name)) {
    await (attemptKey === undefined ? undefined : request.confirmed);
    const { caller, input } = request;
    const perform = (operation?: IdempotentOperation, kept?: unknown): Promise<Answer<N>> =>
      handler(call({ operation, kept, deciding: undefined as Call<N>["deciding"] }));
    const answered = (): Promise<unknown> => performOnce(context, caller, perform);
    if (caller === undefined || !isReadOfCaller(routeOf(name))) return { caller, answer: await answered(), headers };
    // Nobody waits any more for the answer to a request that its confirmation refuses.
    const refused = new AbortController();
    request.confirmed.catch(() => refused.abort());
    const isOver = AbortSignal.any([signal, refused.signal]);
    const read = { name, caller, query: input.query, signal: isOver };
    return { caller, answer: await sharedRead(read, answered), headers };
  }
  const deciding = decidingFor(context);
  const answer = await handler(call({ operation: undefined, deciding: deciding as Call<N>["deciding"] }));
  return { caller: undefined, answer, headers };
}

const hookIdOf = ({ params }: GuardedRequest): string => (params as { readonly id: string }).id;

/** A hook's id is what its caller has to know. For one that is wrong nothing is stored, and it counts as any other. */
async function requireHook(ctx: RelayerContext, input: GuardedRequest, deps: ServeDeps): Promise<void> {
  if (await deps.isHook(hookIdOf(input))) return;
  await deps.limits.unknownCredential(ctx.state.client);
  throw new KeywrightError("trigger_not_found", "There is no such hook.");
}

interface RequestContext {
  readonly ctx: RelayerContext;
  readonly name: RouteName;
  readonly attemptKey: string | undefined;
  readonly request: ConfirmedRequest;
  readonly deps: ServeDeps;
}

/** Runs once the caller is certain: idempotency, role check, operation. */
async function performOnce(
  context: RequestContext,
  caller: Caller | undefined,
  work: (operation?: IdempotentOperation, kept?: unknown) => Promise<unknown>,
): Promise<unknown> {
  const { name, attemptKey, request, deps } = context;
  const run = async (operation?: IdempotentOperation): Promise<unknown> => {
    // A submitted operation was permitted when it began. A confirmed conversion retires the very key that repeats the
    // request, and the client must still learn its outcome.
    if (operation?.isRepeated !== true || !(await deps.wasSubmitted(operation.id))) permit(routeOf(name), caller);
    if (operation?.isRepeated !== true) await countOnce(context, caller);
    return work(operation);
  };
  if (attemptKey === undefined || routeOf(name).idempotentByItself) return run();
  const { query } = context.ctx;
  const isAskedAgain =
    routeOf(name).secretAgain === true && query["secret"] === "again" && attemptKey.length >= UNGUESSABLE_CHARS;
  return deps.idempotency.once(
    name,
    requestName(name, caller?.actorId ?? strangerOf(context), attemptKey, request.bodyHash),
    run,
    isAskedAgain ? work : undefined,
  );
}

/** Whose a request without a confirmed caller is. */
function strangerOf({ ctx, name, request, deps }: RequestContext): string {
  // A hook's sender may have several addresses, and one key for an event that it sends to several hooks.
  if (name === "callHook") return `hook ${hookIdOf(request.input)}`;
  const { identityToken } = request.presented;
  const address = hashedAddress(deps.addressHashKey, ctx.ip);
  return identityToken === undefined ? address : `${address} ${claimedIdentity(identityToken)}`;
}

/** Unverified, like the address: it tells the identities behind one address apart. */
function claimedIdentity(token: string): string {
  try {
    const { iss, sub } = decodeJwt(token);
    return JSON.stringify([iss, sub]);
  } catch {
    return "";
  }
}

/** Counted only for what is done, so that neither invalid nor repeated requests use up a budget. */
async function countOnce({ ctx, name, deps }: RequestContext, caller: Caller | undefined): Promise<void> {
  const { mints, effect, price } = routeOf(name);
  if (mints) await deps.limits.mint(hashedNetworks(deps.addressHashKey, ctx.ip));
  if (caller !== undefined && effect && price === "free") await deps.limits.freeChange(caller.actorId);
}

function decidingFor(context: RequestContext): Deciding {
  const { ctx, deps, request } = context;
  const { presented, identity } = request;
  const identified = async (): Promise<Caller> => {
    const caller = await identity.caller();
    if (caller === undefined) throw new KeywrightError("missing_credential", "A run needs a key or an identity token.");
    return caller;
  };
  return {
    identified,
    named: async (key) => {
      if (presented.key !== undefined) return deps.authentication.learn(presented.key, key);
      const caller = await identified();
      if (caller.accountId === key.accountId) return caller;
      throw new KeywrightError("not_authorized", "Runs of an identity are decided for the account of its own wallet.");
    },
    forget: () => {
      if (presented.key !== undefined) deps.authentication.forget(presented.key);
    },
    as: async (caller, work) => {
      note(ctx, caller);
      return (await performOnce(context, caller, work)) as Answer<"runAction">;
    },
  };
}

async function countAsMint(ctx: RelayerContext, { limits, addressHashKey }: ServeDeps): Promise<void> {
  await limits.mintBy(hashedAddress(addressHashKey, ctx.ip));
  await limits.mint(hashedNetworks(addressHashKey, ctx.ip));
}

function callOf<N extends RouteName>(
  ctx: RelayerContext,
  route: N,
  { input, caller, presented, rawBody, lendBody, confirmed }: ConfirmedRequest,
  headers: Record<string, string>,
  rest: Pick<
    Call<N>,
    "signal" | "attemptKey" | "operation" | "countAsMint" | "countAsFree" | "countAsFreeChange" | "deciding"
  > &
    Partial<Pick<Call<N>, "kept">>,
): Call<N> {
  const call = {
    route,
    ...input,
    caller,
    presented,
    rawBody,
    lendBody,
    confirmed,
    requestId: ctx.state.requestId,
    address: ctx.ip,
    header: (name: string) => ctx.get(name) || undefined,
    acceptsEncoding: (name: string) => ctx.acceptsEncodings(name) === name,
    setHeader: (name: string, value: string) => void (headers[name] = value),
    setTotal: (total: number) => void (headers["X-Total-Count"] = String(total)),
    ...rest,
  };
  return call as unknown as Call<N>;
}

/** Runs `work` until it ends or the deadline passes; the signal also aborts when the client disconnects. */
async function withDeadline<T>(
  ctx: RelayerContext,
  name: RouteName,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const gone = new AbortController();
  const deadlineMs = AWAITING_RUNS.has(name) ? RUN_DEADLINE_MS : REQUEST_DEADLINE_MS;
  const onClose = (): void => gone.abort();
  ctx.res.once("close", onClose);
  // It may have left while its request was read.
  if (ctx.res.closed) gone.abort();
  try {
    return await within(deadlineMs, work(gone.signal), () => {
      gone.abort();
      throw new KeywrightError(
        "timed_out",
        "The service took too long; ask again with the same Idempotency-Key to learn what became of it.",
      );
    });
  } finally {
    ctx.res.off("close", onClose);
  }
}

function send(ctx: RelayerContext, route: Route, answer: unknown): void {
  if (route.answers !== undefined) {
    const { contentType, content, status = 200 } = answer as RawAnswer | (StreamedAnswer & { status?: number });
    ctx.status = status;
    ctx.type = contentType;
    ctx.body = content;
    return;
  }
  guardAnswer(route, answer);
  ctx.type = "application/json";
  ctx.body = JSON.stringify(answer);
}

function raise(error: unknown): never {
  throw error;
}
