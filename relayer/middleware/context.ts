/** Request ids, timing, one access-log line per request, and the counters behind /metrics. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Middleware, ParameterizedContext } from "koa";
import type { RouteName } from "../../protocol/http";
import type { Logger } from "../../protocol/log";
import { defined } from "../../protocol/defined";

export interface RelayerState {
  requestId: string;
  /** The address that the client's limits count by, once a route has matched. */
  client: string;
  /** The matched route, once known. */
  route?: RouteName;
  /** The account the caller acts for, once known. */
  accountId?: string;
  /** The error code of the response. */
  errorCode?: string;
}
export type RelayerContext = ParameterizedContext<RelayerState>;
export type RelayerMiddleware = Middleware<RelayerState>;

/** The client's address, as `ctx.ip` has it. */
export function clientAddress(request: IncomingMessage, trustedProxyHops: number): string | undefined {
  const forwardedFor = trustedProxyHops > 0 ? String(request.headers["x-forwarded-for"] ?? "") : "";
  return forwardedFor.split(/\s*,\s*/).slice(-trustedProxyHops)[0] || request.socket.remoteAddress;
}

/** What the metrics count of a response. */
export interface RequestFacts {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
}

const CORRELATION_ID = /^[\x20-\x7e]{1,128}$/;

/** All that is logged of a request. */
interface RequestLine {
  readonly requestId: string;
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly ms: number;
  readonly account?: string;
  readonly error?: string;
}

/** The outermost middleware: every response carries an id and every request is logged. */
export function requestContext(log: Logger, onAnswered: (facts: RequestFacts) => void): RelayerMiddleware {
  // No member of the line is secret; a search for secrets would allocate as much as all the rest of a request.
  const requests = log.child({}, { redact: [] });
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
    // Respond first, log after.
    setImmediate(() => {
      onAnswered({ route, method, status, seconds });
      const { requestId } = ctx.state;
      const line: RequestLine = { requestId, route, method, status, ms: Math.round(seconds * 1000), ...known(ctx) };
      requests.info(line, "answered");
    });
  };
}

function known({ state }: RelayerContext): Pick<RequestLine, "account" | "error"> {
  return defined({ account: state.accountId, error: state.errorCode });
}
