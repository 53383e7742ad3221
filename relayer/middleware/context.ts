/** Ids, timing and one access-log line for every request; the counters behind /metrics. */
import { randomUUID } from "node:crypto";
import type { Middleware, ParameterizedContext } from "koa";
import type { RouteName } from "../../protocol/http";
import type { Logger } from "../logger";

export interface RelayerState {
  requestId: string;
  /** The route of the table, once known. */
  route?: RouteName;
  /** The account the caller acts for, once known. */
  accountId?: string;
  /** The code of the error it was answered with. */
  errorCode?: string;
}
export type RelayerContext = ParameterizedContext<RelayerState>;
export type RelayerMiddleware = Middleware<RelayerState>;

/** What is counted of an answered request. */
export interface RequestFacts {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
}

const CORRELATION_ID = /^[\x20-\x7e]{1,128}$/;

/** The first middleware: whatever happens after it, the answer carries an id and the log a line. */
export function requestContext(log: Logger, onAnswered: (facts: RequestFacts) => void): RelayerMiddleware {
  return async (ctx, next) => {
    const started = process.hrtime.bigint();
    ctx.state.requestId = randomUUID();
    ctx.set("X-Request-Id", ctx.state.requestId);
    const correlationId = ctx.get("X-Correlation-Id");
    if (CORRELATION_ID.test(correlationId)) ctx.set("X-Correlation-Id", correlationId);
    ctx.set("X-Content-Type-Options", "nosniff");
    ctx.set("Cache-Control", "no-store");
    await next();
    const seconds = Number(process.hrtime.bigint() - started) / 1e9;
    const route = ctx.state.route ?? "none";
    const { method, status } = ctx;
    // The answer goes out first.
    setImmediate(() => {
      onAnswered({ route, method, status, seconds });
      log.info({ requestId: ctx.state.requestId, route, method, status, ms: Math.round(seconds * 1000), ...known(ctx) }, "answered");
    });
  };
}

function known({ state }: RelayerContext): Record<string, string> {
  return {
    ...(state.accountId === undefined ? {} : { account: state.accountId }),
    ...(state.errorCode === undefined ? {} : { error: state.errorCode }),
  };
}
