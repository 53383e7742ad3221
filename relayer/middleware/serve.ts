/**
 * One route of the table as koa middleware, with the checks in the order the wire promises: rate by address, type and size, credential, JSON, fields, rate by key,
 * idempotency, permission; then the handler. Source: wire "Order of checks".
 */
import { routeOf, type Route, type RouteName } from "../../protocol/http";
import { KeywrightError } from "../../protocol/errors";
import { MAX_WALL_MS } from "../../protocol/limits";
import { hasUnknownLength, parseBody, readBody, requireAcceptableBody } from "./body";
import type { Answer, Call, Caller, Handler, Presented, RawAnswer } from "./call";
import { clientGroup, hashedAddress } from "./clientAddress";
import type { RelayerContext, RelayerMiddleware } from "./context";
import { presentedCredentials, type Authentication } from "./credentials";
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

interface Asked {
  readonly presented: Presented;
  readonly caller: Caller | undefined;
  readonly rawBody: Buffer;
  readonly input: GuardedRequest;
}

export function serve<N extends RouteName>(name: N, handler: Handler<N>, deps: ServeDeps): RelayerMiddleware {
  const route = routeOf(name);
  return async (ctx) => {
    ctx.state.route = name;
    const asked = await ask(ctx, route, deps);
    if (asked.caller !== undefined) await deps.limits.requestBy(asked.caller.actorId);
    if (route.mints) await deps.limits.mintAtAll();
    const answer = await withDeadline(ctx, name, (signal) => act(ctx, name, asked, deps, (call) => handler(call), signal));
    send(ctx, route, answer);
  };
}

async function ask(ctx: RelayerContext, route: Route, deps: ServeDeps): Promise<Asked> {
  if (route.mints) await deps.limits.mintBy(clientGroup(ctx.ip));
  requireAcceptableBody(ctx, route.body);
  const early = hasUnknownLength(ctx) ? await readBody(ctx, route.body) : undefined;
  const presented = presentedCredentials(ctx, route.auth);
  const caller = await deps.authentication.callerOf(route.auth, presented, ctx.state.requestId);
  if (caller !== undefined) ctx.state.accountId = caller.accountId;
  if (caller?.wallet !== undefined) ctx.set("X-Account", caller.accountId);
  const rawBody = early ?? (await readBody(ctx, route.body));
  const input = guardRequest(route, { params: ctx["params"], query: ctx.query, body: route.body === "raw" ? undefined : parseBody(rawBody) });
  return { presented, caller, rawBody, input };
}

async function act<N extends RouteName>(
  ctx: RelayerContext,
  name: N,
  asked: Asked,
  deps: ServeDeps,
  handler: Handler<N>,
  signal: AbortSignal,
): Promise<unknown> {
  const attemptKey = idempotencyKeyOf(ctx, name);
  const run = async (idempotencyKey?: string): Promise<Answer<N>> => {
    permit(routeOf(name), asked.caller);
    return handler(callOf(ctx, name, asked, { signal, attemptKey, idempotencyKey }));
  };
  if (attemptKey === undefined) return run();
  if (routeOf(name).idempotentByItself) return run(attemptKey);
  const who = asked.caller?.actorId ?? hashedAddress(ctx.ip);
  const request = requestName(name, who, attemptKey, { params: ctx["params"], body: asked.rawBody });
  return deps.idempotency.once(name, request, (attemptId) => run(attemptId));
}

function callOf<N extends RouteName>(
  ctx: RelayerContext,
  route: N,
  { input, caller, presented, rawBody }: Asked,
  rest: Pick<Call<N>, "signal" | "attemptKey" | "idempotencyKey">,
): Call<N> {
  const call = {
    route,
    ...input,
    caller,
    presented,
    rawBody,
    requestId: ctx.state.requestId,
    header: (name: string) => ctx.get(name) || undefined,
    setHeader: (name: string, value: string) => ctx.set(name, value),
    setTotal: (total: number) => ctx.set("X-Total-Count", String(total)),
    ...rest,
  };
  return call as unknown as Call<N>;
}

/** Runs `work` until it ends or the deadline passes; the signal also tells it that the client has gone. */
async function withDeadline(ctx: RelayerContext, name: RouteName, work: (signal: AbortSignal) => Promise<unknown>): Promise<unknown> {
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
    const { contentType, content } = answer as RawAnswer;
    ctx.type = contentType;
    ctx.body = content;
    return;
  }
  guardAnswer(route, answer);
  ctx.type = "application/json";
  ctx.body = JSON.stringify(answer);
}
