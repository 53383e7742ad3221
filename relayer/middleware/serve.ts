/**
 * One route of the table as koa middleware, with the checks in the order the wire promises: rate by address, type and size, credential, JSON, fields, rate by key,
 * idempotency, permission; then the handler. Source: wire "Order of checks".
 */
import { isDeepStrictEqual } from "node:util";
import { routeOf, type Route, type RouteName } from "../../protocol/http";
import { KeywrightError } from "../../protocol/errors";
import { MAX_WALL_MS } from "../../protocol/limits";
import type { Act } from "../act";
import { parseBody, readBody, requireAcceptableBody } from "./body";
import type { Answer, Call, Caller, Handler, Presented, RawAnswer } from "./call";
import { clientGroup, hashedAddress } from "./clientAddress";
import type { RelayerContext, RelayerMiddleware } from "./context";
import { presentedCredentials, type Authentication, type Identity } from "./credentials";
import { guardAnswer, guardRequest, type GuardedRequest } from "./guard";
import { idempotencyKeyOf, requestName, type Idempotency } from "./idempotency";
import { permit } from "./permit";
import type { RequestLimits } from "./rateLimits";

export interface ServeDeps {
  readonly authentication: Authentication;
  readonly limits: RequestLimits;
  readonly idempotency: Idempotency;
}

/** How long a request may take: a run its wall time and the queue, anything else the slowest write. */
const REQUEST_DEADLINE_MS = 120_000;
const RUN_DEADLINE_MS = MAX_WALL_MS + REQUEST_DEADLINE_MS;

/** A request whose form is good, and who it is from. */
interface Asked {
  readonly presented: Presented;
  readonly caller: Caller | undefined;
  /** Set while `caller` is only remembered: what the contract says now. */
  readonly confirmation: Promise<Caller | undefined> | undefined;
  readonly rawBody: Buffer;
  readonly input: GuardedRequest;
}

export function serve<N extends RouteName>(name: N, handler: Handler<N>, deps: ServeDeps): RelayerMiddleware {
  const route = routeOf(name);
  return async (ctx) => {
    ctx.state.route = name;
    const asked = await ask(ctx, name, deps);
    if (route.mints) await deps.limits.mintAtAll();
    const given = await withDeadline(ctx, name, (signal) => asConfirmed(asked, (sure) => act(ctx, name, sure, deps, handler, signal)));
    note(ctx, given.caller);
    ctx.set({ ...given.headers });
    send(ctx, route, given.answer);
  };
}

async function ask(ctx: RelayerContext, name: RouteName, deps: ServeDeps): Promise<Asked> {
  const route = routeOf(name);
  await withinBudgets(ctx, route, deps.limits);
  requireAcceptableBody(ctx, route.body);
  const presented = presentedCredentials(ctx, route.auth);
  const identity = await identify(ctx, route, presented, deps);
  const confirmation = identity.caller;
  const remembered = isAnticipated(name, route) ? identity.remembered : undefined;
  const caller = remembered ?? (await confirmation);
  const rest = readRest(ctx, route, caller, deps);
  if (remembered === undefined) return { presented, caller, confirmation: undefined, ...(await rest) };
  // Whoever turns out not to be the caller hears that first, whatever else is wrong with the request.
  confirmation.catch(() => undefined);
  const read = await rest.catch((error: unknown) => confirmation.then(() => raise(error)));
  return { presented, caller, confirmation, ...read };
}

/** What an address may ask for, before anything is done for it. */
async function withinBudgets(ctx: RelayerContext, route: Route, limits: RequestLimits): Promise<void> {
  const address = clientGroup(ctx.ip);
  await limits.request(address);
  if (route.heavy) await limits.heavy(address);
  if (route.mints) await limits.mintBy(address);
}

/** Codes of credentials that are nobody's. */
const NOBODYS: ReadonlySet<string> = new Set([
  "unknown_key",
  "key_expired",
  "invalid_identity_token",
  "invalid_wallet_auth",
  "account_not_found",
  "account_not_owned",
]);

/** Asking who somebody is costs exchanges with chain and executor: for credentials that turn out to be nobody's each address has a budget of its own. */
async function identify(ctx: RelayerContext, route: Route, presented: Presented, { authentication, limits }: ServeDeps): Promise<Identity> {
  if (authentication.isFamiliar(route.auth, presented)) return authentication.identify(route.auth, presented, ctx.state.requestId);
  const takeBack = await limits.stranger(clientGroup(ctx.ip));
  const identity = authentication.identify(route.auth, presented, ctx.state.requestId);
  // `wellFormedKey` asks about the key in its handler, whose answer is no credential: it counts in any case.
  if (route.auth !== "wellFormedKey") {
    identity.caller.then(takeBack, (error: unknown) => {
      if (!(error instanceof KeywrightError) || !NOBODYS.has(error.code)) takeBack();
    });
  }
  return identity;
}

/** Asking and being told can go on at once where nothing is changed before the caller is confirmed. */
const isAnticipated = (name: RouteName, { method }: Route): boolean => method === "GET" || name === "runAction";

async function readRest(ctx: RelayerContext, route: Route, caller: Caller | undefined, { limits }: ServeDeps): Promise<Pick<Asked, "rawBody" | "input">> {
  note(ctx, caller);
  const rawBody = await readBody(ctx, route.body);
  const input = guardRequest(route, { params: ctx["params"], query: ctx.query, body: route.body === "raw" ? undefined : parseBody(rawBody) });
  if (caller !== undefined) await limits.requestBy(caller.actorId);
  if (caller !== undefined && route.pays) await limits.payment(caller.accountId);
  return { rawBody, input };
}

function note(ctx: RelayerContext, caller: Caller | undefined): void {
  if (caller === undefined) return;
  ctx.state.accountId = caller.accountId;
  if (caller.wallet !== undefined) ctx.set("X-Account", caller.accountId);
}

interface Given {
  readonly caller: Caller | undefined;
  readonly answer: unknown;
  readonly headers: Readonly<Record<string, string>>;
}
type Sure = Omit<Asked, "confirmation"> & { readonly confirmed: Promise<void> };

/**
 * Where the caller is remembered, the work begins while the contract is asked who that is now. Its outcome counts only if the contract says the same; else
 * it is forgotten and the work is done for the caller there is, or refused.
 */
async function asConfirmed(asked: Asked, work: (asked: Sure) => Promise<Given>): Promise<Given> {
  const { confirmation } = asked;
  if (confirmation === undefined) return work({ ...asked, confirmed: Promise.resolve() });
  const isSame = confirmation.then((caller) => isDeepStrictEqual(caller, asked.caller));
  const confirmed = isSame.then((same) => {
    if (!same) throw new Error("the caller is not who was remembered");
  });
  const early = work({ ...asked, confirmed });
  // Both are looked at below, or not at all.
  early.catch(() => undefined);
  confirmed.catch(() => undefined);
  return (await isSame) ? early : work({ ...asked, caller: await confirmation, confirmed: Promise.resolve() });
}

async function act<N extends RouteName>(ctx: RelayerContext, name: N, asked: Sure, deps: ServeDeps, handler: Handler<N>, signal: AbortSignal): Promise<Given> {
  const headers: Record<string, string> = {};
  const attemptKey = idempotencyKeyOf(ctx, name);
  const run = async (one?: Act): Promise<Answer<N>> => {
    permit(routeOf(name), asked.caller);
    return handler(callOf(ctx, name, asked, headers, { signal, attemptKey, act: one, countAsMint: () => countAsMint(ctx, deps) }));
  };
  const given = (answer: unknown): Given => ({ caller: asked.caller, answer, headers });
  if (attemptKey === undefined || routeOf(name).idempotentByItself) return given(await run());
  const who = asked.caller?.actorId ?? hashedAddress(ctx.ip);
  const request = requestName(name, who, attemptKey, { params: ctx["params"], body: asked.rawBody });
  await asked.confirmed;
  return given(await deps.idempotency.once(name, request, run));
}

async function countAsMint(ctx: RelayerContext, { limits }: ServeDeps): Promise<void> {
  await limits.mintBy(clientGroup(ctx.ip));
  await limits.mintAtAll();
}

function callOf<N extends RouteName>(
  ctx: RelayerContext,
  route: N,
  { input, caller, presented, rawBody, confirmed }: Sure,
  headers: Record<string, string>,
  rest: Pick<Call<N>, "signal" | "attemptKey" | "act" | "countAsMint">,
): Call<N> {
  const call = {
    route,
    ...input,
    caller,
    presented,
    rawBody,
    confirmed,
    requestId: ctx.state.requestId,
    header: (name: string) => ctx.get(name) || undefined,
    setHeader: (name: string, value: string) => void (headers[name] = value),
    setTotal: (total: number) => void (headers["X-Total-Count"] = String(total)),
    ...rest,
  };
  return call as unknown as Call<N>;
}

/** Runs `work` until it ends or the deadline passes; the signal also tells it that the client has gone. */
async function withDeadline<T>(ctx: RelayerContext, name: RouteName, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const gone = new AbortController();
  const deadlineMs = name === "runAction" ? RUN_DEADLINE_MS : REQUEST_DEADLINE_MS;
  const onClose = (): void => gone.abort();
  ctx.res.once("close", onClose);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      gone.abort();
      reject(new KeywrightError("timed_out", "The service took too long; ask again with the same Idempotency-Key to learn what became of it."));
    }, deadlineMs);
  });
  try {
    return await Promise.race([work(gone.signal), late]);
  } finally {
    clearTimeout(timer);
    ctx.res.off("close", onClose);
  }
}

function send(ctx: RelayerContext, route: Route, answer: unknown): void {
  if (route.answers !== undefined) {
    const { contentType, content, status = 200 } = answer as RawAnswer;
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
